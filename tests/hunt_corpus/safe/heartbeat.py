"""Beats and checks exclude one another."""

from __future__ import annotations

import threading
import time


class HeartbeatMonitor:
    def __init__(self, timeout: float = 30.0) -> None:
        self.timeout = timeout
        self._last: dict[str, float] = {}
        self.restarts: dict[str, int] = {}
        self._lock = threading.Lock()

    def beat(self, worker: str) -> int:
        with self._lock:
            if worker not in self._last:
                self.restarts[worker] = self.restarts.get(worker, 0) + 1
            self._last[worker] = time.monotonic()
            return self.restarts[worker]

    def check(self) -> list[str]:
        with self._lock:
            now = time.monotonic()
            dead = []
            for worker, seen in self._last.items():
                if now - seen > self.timeout:
                    dead.append(worker)
            for worker in dead:
                del self._last[worker]
            return dead

    def forget(self, worker: str) -> bool:
        with self._lock:
            return self._last.pop(worker, None) is not None
