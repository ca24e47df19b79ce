"""Acquire, try, finally: the old way to hold a lock is as good as `with`."""

from __future__ import annotations

import threading


class BoundedLog:
    def __init__(self, limit=2):
        self.limit = limit
        self._lines = []
        self.dropped = 0
        self._mutex = threading.Lock()

    def write(self, line):
        self._mutex.acquire()
        try:
            self._lines.append(line)
            while len(self._lines) > self.limit:
                del self._lines[0]
                self.dropped += 1
        finally:
            self._mutex.release()

    def tail(self, count=1):
        self._mutex.acquire()
        try:
            return self._lines[-count:]
        finally:
            self._mutex.release()

    def drain(self):
        self._mutex.acquire()
        try:
            lines = list(self._lines)
            self._lines.clear()
            return lines
        finally:
            self._mutex.release()

    def __len__(self):
        self._mutex.acquire()
        try:
            return len(self._lines)
        finally:
            self._mutex.release()
