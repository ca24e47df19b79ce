"""Two last arrivals: nobody, or both, find the count at zero and open the gate."""

from __future__ import annotations


class Countdown:
    def __init__(self, count=2):
        self._left = count
        self.opened = 0

    def arrive(self):
        left = self._left - 1
        self._left = left
        if left == 0:
            self.opened += 1
            return True
        return False

    def left(self):
        return self._left

    def extend(self, count=1):
        self._left = self._left + count
