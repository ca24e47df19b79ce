"""A semaphore lends the slots; the names stand behind a lock of their own."""

from __future__ import annotations

import threading


class UploadSlots:
    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self._free = threading.Semaphore(slots)
        self._lock = threading.Lock()
        self._used: list[str] = []

    def try_take(self, name: str) -> bool:
        with self._lock:
            if not self._free.acquire(blocking=False):
                return False
            self._used.append(name)
            return True

    def give_back(self, name: str) -> None:
        with self._lock:
            if name in self._used:
                self._used.remove(name)
                self._free.release()

    def used(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._used)
