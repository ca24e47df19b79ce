"""Reentrant, since `add` calls `flush` while it holds the lock."""

from __future__ import annotations

import threading


class Batcher:
    """Collect records and hand them on in batches; many producers share one."""

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self._pending: list[str] = []
        self.batches: list[tuple[str, ...]] = []
        self._lock = threading.RLock()

    def add(self, record: str) -> bool:
        with self._lock:
            self._pending.append(record)
            if len(self._pending) >= self.size:
                self.flush()
                return True
            return False

    def flush(self) -> int:
        with self._lock:
            batch = tuple(self._pending)
            self._pending = []
            if batch:
                self.batches.append(batch)
            return len(batch)
