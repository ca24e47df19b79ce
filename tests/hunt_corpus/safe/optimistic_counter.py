"""Read without the lock, swap with it, try again when somebody was faster."""

from __future__ import annotations

import threading


class OptimisticCounter:
    def __init__(self, value: int = 0) -> None:
        self._value = value
        self._lock = threading.Lock()

    def _compare_and_swap(self, old: int, new: int) -> bool:
        with self._lock:
            if self._value != old:
                return False
            self._value = new
            return True

    def add(self, amount: int = 1) -> int:
        while True:
            old = self._value
            if self._compare_and_swap(old, old + amount):
                return old + amount

    def get(self) -> int:
        return self._value
