"""A class with slots: the level and the peak are changed without a lock."""

from __future__ import annotations


class Gauge:
    __slots__ = ("_level", "_peak")

    def __init__(self, level: int = 0) -> None:
        self._level = level
        self._peak = level

    def increase(self, by: int = 1) -> int:
        self._level += by
        if self._level > self._peak:
            self._peak = self._level
        return self._level

    def decrease(self, by: int = 1) -> int:
        self._level -= by
        return self._level

    def peak(self) -> int:
        return self._peak
