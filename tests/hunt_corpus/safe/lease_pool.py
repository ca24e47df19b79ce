"""Taking and giving back hold the lock; nobody holds it while the resource is in use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class LeasePool:
    def __init__(self, names: tuple[str, ...] = ("a",)) -> None:
        self._free = list(names)
        self.leases = 0
        self._lock = threading.Lock()

    def take(self) -> str | None:
        with self._lock:
            if not self._free:
                return None
            self.leases += 1
            return self._free.pop()

    def give(self, name: str) -> None:
        with self._lock:
            self._free.append(name)

    @contextmanager
    def lease(self) -> Iterator[str | None]:
        name = self.take()
        try:
            yield name
        finally:
            if name is not None:
                self.give(name)

    def free(self) -> int:
        with self._lock:
            return len(self._free)
