"""One lock for the life of the object."""

from __future__ import annotations

import threading


class RequestMetrics:
    """Thread-safe request counters."""

    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.by_path: dict[str, int] = {}
        self._lock = threading.Lock()

    def record(self, path: str, status: int = 200) -> None:
        lock = self._lock
        with lock:
            self.requests += 1
            self.by_path[path] = self.by_path.get(path, 0) + 1
            if status >= 500:
                self.errors += 1

    def error_rate(self) -> float:
        with self._lock:
            if self.requests == 0:
                return 0.0
            return self.errors / self.requests
