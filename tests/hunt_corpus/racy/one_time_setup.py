"""The flag goes up before the work is done: a second thread goes on with half a set-up."""

from __future__ import annotations


class Service:
    def __init__(self):
        self._started = False
        self._routes = {}

    def start(self):
        if self._started:
            return False
        self._started = True
        self._routes["/"] = "index"
        self._routes["/help"] = "help"
        return True

    def route(self, path="/help"):
        self.start()
        return self._routes.get(path, "not found")
