"""Started under a lock; an event says that it is done, so that later calls need no lock."""

from __future__ import annotations

import threading


class Service:
    def __init__(self):
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._routes = {}

    def start(self):
        if self._ready.is_set():
            return False
        with self._lock:
            if self._ready.is_set():
                return False
            self._routes["/"] = "index"
            self._routes["/help"] = "help"
            self._ready.set()
            return True

    def route(self, path="/help"):
        self.start()
        return self._routes.get(path, "not found")
