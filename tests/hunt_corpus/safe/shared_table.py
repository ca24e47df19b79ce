"""A lock for many readers or one writer, made of a condition."""

from __future__ import annotations

import threading
from contextlib import contextmanager


class ReadWriteLock:
    def __init__(self):
        self._changed = threading.Condition()
        self._readers = 0
        self._writing = False

    @contextmanager
    def reading(self):
        with self._changed:
            while self._writing:
                self._changed.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self):
        with self._changed:
            while self._writing or self._readers:
                self._changed.wait()
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()


class SharedTable:
    def __init__(self):
        self._lock = ReadWriteLock()
        self._rows = {"a": 1}
        self._moves = 0

    def get(self, name):
        with self._lock.reading():
            return self._rows.get(name)

    def rename(self, old="a", new="b"):
        with self._lock.writing():
            if old not in self._rows:
                return False
            self._rows[new] = self._rows.pop(old)
            self._moves += 1
            return True

    def names(self):
        with self._lock.reading():
            return sorted(self._rows)
