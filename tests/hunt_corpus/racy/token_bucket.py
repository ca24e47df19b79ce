"""Two callers see the last token; both take it and the bucket goes below zero."""

from __future__ import annotations

import time


class TokenBucket:
    """Rate limiter: `rate` tokens a second, at most `capacity` of them."""

    def __init__(self, capacity: int = 1, rate: float = 0.0) -> None:
        self.capacity = capacity
        self.rate = rate
        self._tokens = float(capacity)
        self._updated = time.monotonic()

    def _refill(self) -> None:
        now = time.monotonic()
        self._tokens = min(self.capacity, self._tokens + (now - self._updated) * self.rate)
        self._updated = now

    def try_acquire(self, tokens: int = 1) -> bool:
        self._refill()
        if self._tokens >= tokens:
            self._tokens -= tokens
            return True
        return False

    @property
    def available(self) -> float:
        return self._tokens
