"""A counter with its bug and without, for the tests of `assert_atomic`."""

from __future__ import annotations

import threading


class Racy:
    def __init__(self) -> None:
        self.n = 0

    def add(self) -> None:
        self.n = self.n + 1


class Locked:
    def __init__(self) -> None:
        self.n = 0
        self._lock = threading.Lock()

    def add(self) -> None:
        with self._lock:
            self.n = self.n + 1
