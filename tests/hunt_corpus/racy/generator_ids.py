"""A generator that two threads advance at once: ValueError, generator already executing."""

from __future__ import annotations


class Numbering:
    def __init__(self, start=1, step=1):
        self.start = start
        self.step = step
        self._numbers = self._count()

    def _count(self):
        number = self.start
        while True:
            yield number
            number = number + self.step

    def next(self):
        return next(self._numbers)

    def restart(self):
        self._numbers = self._count()
