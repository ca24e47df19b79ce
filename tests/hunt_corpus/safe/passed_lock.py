"""The lock that is passed in guards both."""

from __future__ import annotations

import threading
from typing import Any


class Ledger:
    def __init__(self, lock: Any = None) -> None:
        self._lock = lock or threading.Lock()
        self._entries: list[int] = []
        self._balance = 0

    def post(self, amount: int) -> int:
        with self._lock:
            self._entries.append(amount)
            self._balance = self._balance + amount
            return self._balance

    def reverse_last(self) -> int | None:
        with self._lock:
            if not self._entries:
                return None
            amount = self._entries.pop()
            self._balance = self._balance - amount
            return amount
