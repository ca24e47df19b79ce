"""The number of failures and the pause are read and written apart."""

from __future__ import annotations

import random


class Backoff:
    """Pauses that grow with every failure, with some jitter."""

    def __init__(self, base: float = 1.0, limit: float = 60.0) -> None:
        self.base = base
        self.limit = limit
        self._failures = 0
        self.last_pause = 0.0

    def failed(self) -> float:
        self._failures = self._failures + 1
        pause = min(self.limit, self.base * 2**self._failures)
        self.last_pause = pause * (0.5 + random.random() / 2)
        return self.last_pause

    def succeeded(self) -> None:
        self._failures = 0
        self.last_pause = 0.0

    def failures(self) -> int:
        return self._failures
