"""The generator is advanced under a lock."""

from __future__ import annotations

import threading


class Numbering:
    def __init__(self, start=1, step=1):
        self.start = start
        self.step = step
        self._lock = threading.Lock()
        self._numbers = self._count()

    def _count(self):
        number = self.start
        while True:
            yield number
            number = number + self.step

    def next(self):
        with self._lock:
            return next(self._numbers)

    def restart(self):
        with self._lock:
            self._numbers = self._count()
