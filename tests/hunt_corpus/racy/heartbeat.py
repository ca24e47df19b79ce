"""`check` walks over the workers while a beat adds one, and drops one that has just come back."""

from __future__ import annotations

import time


class HeartbeatMonitor:
    def __init__(self, timeout: float = 30.0) -> None:
        self.timeout = timeout
        self._last: dict[str, float] = {}
        self.restarts: dict[str, int] = {}

    def beat(self, worker: str) -> int:
        if worker not in self._last:
            self.restarts[worker] = self.restarts.get(worker, 0) + 1
        self._last[worker] = time.monotonic()
        return self.restarts[worker]

    def check(self) -> list[str]:
        now = time.monotonic()
        dead = []
        for worker, seen in self._last.items():
            if now - seen > self.timeout:
                dead.append(worker)
        for worker in dead:
            del self._last[worker]
        return dead

    def forget(self, worker: str) -> bool:
        return self._last.pop(worker, None) is not None
