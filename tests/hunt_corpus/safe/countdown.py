"""The count is changed and looked at under a condition."""

from __future__ import annotations

import threading


class Countdown:
    def __init__(self, count=2):
        self._left = count
        self.opened = 0
        self._lock = threading.Condition()

    def arrive(self):
        with self._lock:
            left = self._left - 1
            self._left = left
            if left == 0:
                self.opened += 1
                return True
            return False

    def left(self):
        with self._lock:
            return self._left

    def extend(self, count=1):
        with self._lock:
            self._left = self._left + count
