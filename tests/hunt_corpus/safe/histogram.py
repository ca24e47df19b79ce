"""All three belong to one lock, also for whoever reads them."""

from __future__ import annotations

import threading
from bisect import bisect_left


class Histogram:
    """Latency histogram of all request threads."""

    def __init__(self, bounds: tuple[float, ...] = (0.1, 1.0, 10.0)) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.count = 0
        self.sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        with self._lock:
            self.buckets[bisect_left(self.bounds, value)] += 1
            self.count += 1
            self.sum += value

    def mean(self) -> float:
        with self._lock:
            if self.count == 0:
                return 0.0
            return self.sum / self.count

    def snapshot(self) -> tuple[int, float, tuple[int, ...]]:
        with self._lock:
            return self.count, self.sum, tuple(self.buckets)
