"""The whole decision stands under the lock."""

from __future__ import annotations

import threading
import time
from collections import deque


class SlidingWindowLimiter:
    def __init__(self, limit=1, window=60):
        self.limit = limit
        self.window = window
        self._calls = deque()
        self._lock = threading.Lock()

    def allow(self):
        with self._lock:
            now = time.monotonic()
            while self._calls and self._calls[0] <= now - self.window:
                self._calls.popleft()
            if len(self._calls) < self.limit:
                self._calls.append(now)
                return True
            return False

    def remaining(self):
        with self._lock:
            return max(0, self.limit - len(self._calls))

    def reset(self):
        with self._lock:
            self._calls.clear()
