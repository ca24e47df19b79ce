"""Public methods take the lock, `_locked` helpers are called with it held."""

from __future__ import annotations

import threading


class BudgetExceeded(Exception):
    pass


class Budget:
    """A limit on spending. Thread-safe."""

    def __init__(self, limit: int = 10) -> None:
        self.limit = limit
        self.spent = 0
        self._lock = threading.Lock()

    def spend(self, amount: int) -> int:
        with self._lock:
            if self.spent + amount > self.limit:
                raise BudgetExceeded(f"{amount} more than {self._left_locked()} left")
            self.spent += amount
            return self._left_locked()

    def _left_locked(self) -> int:
        return self.limit - self.spent

    def refund(self, amount: int) -> None:
        with self._lock:
            self.spent = max(0, self.spent - amount)

    def remaining(self) -> int:
        with self._lock:
            return self._left_locked()
