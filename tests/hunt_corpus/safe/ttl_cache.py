"""Single dict operations alone: `get` and `pop` with a default cannot be torn."""

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
        entry = self._data.get(key)
        if entry is None or entry[1] <= self.clock():
            return None
        return entry[0]

    def delete(self, key):
        return self._data.pop(key, None) is not None
