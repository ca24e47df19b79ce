"""The comparison and the two writes are one step."""

from __future__ import annotations

import threading


class HighScore:
    def __init__(self):
        self.best = 0
        self.holder = None
        self._lock = threading.Lock()

    def submit(self, player, score):
        with self._lock:
            if score > self.best:
                self.best = score
                self.holder = player
                return True
            return False

    def current(self):
        with self._lock:
            return (self.holder, self.best)

    def reset(self):
        with self._lock:
            self.best = 0
            self.holder = None
