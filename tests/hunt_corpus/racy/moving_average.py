"""The window and its sum are kept apart: they drift away from one another for ever."""

from __future__ import annotations

from collections import deque


class MovingAverage:
    def __init__(self, window: int = 3) -> None:
        self.window = window
        self._values: deque[float] = deque()
        self._sum = 0.0

    def add(self, value: float) -> float:
        self._values.append(value)
        self._sum += value
        if len(self._values) > self.window:
            self._sum -= self._values.popleft()
        return self._sum / len(self._values)

    def average(self) -> float:
        if not self._values:
            return 0.0
        return self._sum / len(self._values)
