"""The same dataclass with a lock as a field that takes no part in comparison."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class DownloadProgress:
    total: int = 10
    received: int = 0
    chunks: list[int] = field(default_factory=list)
    finished: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add_chunk(self, size: int) -> float:
        with self._lock:
            self.chunks.append(size)
            self.received = sum(self.chunks)
            if self.received >= self.total:
                self.finished += 1
            return self.received / self.total

    @property
    def percent(self) -> float:
        with self._lock:
            return 100.0 * self.received / self.total

    def restart(self) -> None:
        with self._lock:
            self.received = 0
            self.chunks = []
