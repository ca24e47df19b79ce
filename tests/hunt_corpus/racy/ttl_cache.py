"""Two readers see the same expired entry; both delete it and the second gets a KeyError."""

from __future__ import annotations

import time


class TTLCache:
    def __init__(self, ttl=60.0, clock=time.monotonic):
        self.ttl = ttl
        self.clock = clock
        self._data = {}

    def set(self, key, value, ttl=None):
        expires = self.clock() + (self.ttl if ttl is None else ttl)
        self._data[key] = (value, expires)

    def get(self, key):
        if key not in self._data:
            return None
        value, expires = self._data[key]
        if expires <= self.clock():
            del self._data[key]
            return None
        return value

    def delete(self, key):
        if key in self._data:
            del self._data[key]
            return True
        return False
