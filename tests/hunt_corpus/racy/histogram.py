"""The bucket, the count and the sum are changed one after the other without a lock."""

from __future__ import annotations

from bisect import bisect_left


class Histogram:
    """Latency histogram of all request threads."""

    def __init__(self, bounds: tuple[float, ...] = (0.1, 1.0, 10.0)) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.count = 0
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.buckets[bisect_left(self.bounds, value)] += 1
        self.count += 1
        self.sum += value

    def mean(self) -> float:
        if self.count == 0:
            return 0.0
        return self.sum / self.count

    def snapshot(self) -> tuple[int, float, tuple[int, ...]]:
        return self.count, self.sum, tuple(self.buckets)
