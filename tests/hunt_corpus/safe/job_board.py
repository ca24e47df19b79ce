"""Numbers come from a counter before the lock; in which order jobs are noted does not matter."""

from __future__ import annotations

import itertools
import threading


class JobBoard:
    def __init__(self):
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._jobs = {}
        self._log = []

    def post(self, title):
        number = next(self._numbers)
        with self._lock:
            self._jobs[number] = title
            self._log.append(number)
        return number

    def finish(self, number):
        with self._lock:
            return self._jobs.pop(number, None)

    def open_jobs(self):
        with self._lock:
            return dict(self._jobs)
