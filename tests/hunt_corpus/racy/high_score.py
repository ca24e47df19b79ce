"""A lower score overwrites a higher one: both were compared with the same old best."""

from __future__ import annotations


class HighScore:
    def __init__(self):
        self.best = 0
        self.holder = None

    def submit(self, player, score):
        if score > self.best:
            self.best = score
            self.holder = player
            return True
        return False

    def current(self):
        return (self.holder, self.best)

    def reset(self):
        self.best = 0
        self.holder = None
