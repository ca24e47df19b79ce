"""Chance is drawn before the lock, so whoever draws first need not be first to write: it is chance."""

from __future__ import annotations

import random
import threading


class Backoff:
    """Pauses that grow with every failure, with some jitter."""

    def __init__(self, base: float = 1.0, limit: float = 60.0) -> None:
        self.base = base
        self.limit = limit
        self._failures = 0
        self.last_pause = 0.0
        self._lock = threading.Lock()

    def failed(self) -> float:
        jitter = 0.5 + random.random() / 2
        with self._lock:
            self._failures = self._failures + 1
            pause = min(self.limit, self.base * 2**self._failures)
            self.last_pause = pause * jitter
            return self.last_pause

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0
            self.last_pause = 0.0

    def failures(self) -> int:
        with self._lock:
            return self._failures
