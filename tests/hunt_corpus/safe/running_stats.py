"""Count and total are one immutable pair, replaced as a whole under a lock; readers take it once."""

from __future__ import annotations

import threading


class RunningStats:
    def __init__(self):
        self._lock = threading.Lock()
        self._pair = (0, 0)

    @property
    def count(self):
        return self._pair[0]

    @property
    def total(self):
        return self._pair[1]

    def add(self, value):
        with self._lock:
            count, total = self._pair
            self._pair = (count + 1, total + value)

    def mean(self):
        count, total = self._pair
        if not count:
            return None
        return total / count

    def merge(self, other):
        more, sum_of_more = other._pair
        with self._lock:
            count, total = self._pair
            self._pair = (count + more, total + sum_of_more)

    def clear(self):
        with self._lock:
            self._pair = (0, 0)
