"""Between the look at the window and the append another caller gets in: one call too many."""

from __future__ import annotations

import time
from collections import deque


class SlidingWindowLimiter:
    def __init__(self, limit=1, window=60):
        self.limit = limit
        self.window = window
        self._calls = deque()

    def allow(self):
        now = time.monotonic()
        while self._calls and self._calls[0] <= now - self.window:
            self._calls.popleft()
        if len(self._calls) < self.limit:
            self._calls.append(now)
            return True
        return False

    def remaining(self):
        return max(0, self.limit - len(self._calls))

    def reset(self):
        self._calls.clear()
