"""The number is taken and the name noted under a lock of the class."""

from __future__ import annotations

import threading


class Worker:
    _count = 0
    _names = []
    _class_lock = threading.Lock()

    def __init__(self, kind="worker"):
        self.kind = kind
        self.name = None

    def register(self):
        with Worker._class_lock:
            Worker._count += 1
            self.name = f"{self.kind}-{Worker._count}"
            Worker._names.append(self.name)
            return self.name

    @classmethod
    def spawned(cls):
        with cls._class_lock:
            return cls._count

    @classmethod
    def forget(cls):
        with cls._class_lock:
            cls._count = 0
            cls._names = []
