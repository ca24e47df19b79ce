"""The smallest free port is chosen, then taken: two threads choose the same."""

from __future__ import annotations


class NoPortLeft(Exception):
    pass


class PortAllocator:
    def __init__(self, first=8000, count=3):
        self._free = set(range(first, first + count))
        self._owners = {}

    def allocate(self, owner):
        if not self._free:
            raise NoPortLeft(owner)
        port = min(self._free)
        self._free.discard(port)
        self._owners[port] = owner
        return port

    def release(self, port):
        if port not in self._owners:
            return False
        del self._owners[port]
        self._free.add(port)
        return True

    def owner(self, port):
        return self._owners.get(port)
