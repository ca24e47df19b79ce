"""The lock has a slot as well."""

from __future__ import annotations

import threading


class Gauge:
    __slots__ = ("_level", "_lock", "_peak")

    def __init__(self, level: int = 0) -> None:
        self._level = level
        self._peak = level
        self._lock = threading.Lock()

    def increase(self, by: int = 1) -> int:
        with self._lock:
            self._level += by
            if self._level > self._peak:
                self._peak = self._level
            return self._level

    def decrease(self, by: int = 1) -> int:
        with self._lock:
            self._level -= by
            return self._level

    def peak(self) -> int:
        with self._lock:
            return self._peak
