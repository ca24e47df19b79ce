"""A reader between the two writes sees a count without its sum: a wrong mean."""

from __future__ import annotations


class RunningStats:
    def __init__(self):
        self.count = 0
        self.total = 0

    def add(self, value):
        self.count = self.count + 1
        self.total = self.total + value

    def mean(self):
        if not self.count:
            return None
        return self.total / self.count

    def merge(self, other):
        self.count += other.count
        self.total += other.total

    def clear(self):
        self.count = 0
        self.total = 0
