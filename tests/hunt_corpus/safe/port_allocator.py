"""Choosing and taking are one step."""

from __future__ import annotations

import threading


class NoPortLeft(Exception):
    pass


class PortAllocator:
    def __init__(self, first=8000, count=3):
        self._free = set(range(first, first + count))
        self._owners = {}
        self._lock = threading.Lock()

    def allocate(self, owner):
        with self._lock:
            if not self._free:
                raise NoPortLeft(owner)
            port = min(self._free)
            self._free.discard(port)
            self._owners[port] = owner
            return port

    def release(self, port):
        with self._lock:
            if port not in self._owners:
                return False
            del self._owners[port]
            self._free.add(port)
            return True

    def owner(self, port):
        with self._lock:
            return self._owners.get(port)
