"""Window and sum change together under the lock."""

from __future__ import annotations

import threading
from collections import deque


class MovingAverage:
    def __init__(self, window: int = 3) -> None:
        self.window = window
        self._values: deque[float] = deque()
        self._sum = 0.0
        self._lock = threading.Lock()

    def add(self, value: float) -> float:
        with self._lock:
            self._values.append(value)
            self._sum += value
            if len(self._values) > self.window:
                self._sum -= self._values.popleft()
            return self._sum / len(self._values)

    def average(self) -> float:
        with self._lock:
            if not self._values:
                return 0.0
            return self._sum / len(self._values)
