"""A reentrant lock around each method keeps table and order together."""

from __future__ import annotations

import threading


class DuplicatePlugin(Exception):
    pass


class PluginRegistry:
    def __init__(self):
        self._plugins = {}
        self._order = []
        self._lock = threading.RLock()

    def register(self, name, plugin):
        with self._lock:
            if name in self._plugins:
                raise DuplicatePlugin(name)
            self._plugins[name] = plugin
            self._order.append(name)

    def unregister(self, name):
        with self._lock:
            if name not in self._plugins:
                return None
            self._order.remove(name)
            return self._plugins.pop(name)

    def get(self, name):
        with self._lock:
            return self._plugins.get(name)

    def names(self):
        with self._lock:
            return list(self._order)


registry = PluginRegistry()
