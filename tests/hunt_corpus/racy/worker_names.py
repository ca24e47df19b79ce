"""The class itself keeps the number: workers built by two threads get the same name."""

from __future__ import annotations


class Worker:
    _count = 0
    _names = []

    def __init__(self, kind="worker"):
        self.kind = kind
        self.name = None

    def register(self):
        Worker._count += 1
        self.name = f"{self.kind}-{Worker._count}"
        Worker._names.append(self.name)
        return self.name

    @classmethod
    def spawned(cls):
        return cls._count

    @classmethod
    def forget(cls):
        cls._count = 0
        cls._names = []
