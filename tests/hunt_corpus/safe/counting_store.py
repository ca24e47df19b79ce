"""The child takes the lock that it inherits."""

from __future__ import annotations

import threading


class Store:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._data: dict[str, int] = {}

    def put(self, key: str, value: int) -> None:
        with self._lock:
            self._data[key] = value

    def get(self, key: str) -> int | None:
        with self._lock:
            return self._data.get(key)


class CountingStore(Store):
    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    def increment(self, key: str, by: int = 1) -> int:
        with self._lock:
            value = (self._data.get(key) or 0) + by
            self._data[key] = value
            self.writes += 1
            return value
