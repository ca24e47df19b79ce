"""Two plug-ins with one name both pass the check; the second silently replaces the first."""

from __future__ import annotations


class DuplicatePlugin(Exception):
    pass


class PluginRegistry:
    def __init__(self):
        self._plugins = {}
        self._order = []

    def register(self, name, plugin):
        if name in self._plugins:
            raise DuplicatePlugin(name)
        self._plugins[name] = plugin
        self._order.append(name)

    def unregister(self, name):
        if name not in self._plugins:
            return None
        self._order.remove(name)
        return self._plugins.pop(name)

    def get(self, name):
        return self._plugins.get(name)

    def names(self):
        return list(self._order)


registry = PluginRegistry()
