"""Both accounts change in one step, and the total is read under the same lock."""

from __future__ import annotations

import threading


class InsufficientFunds(Exception):
    pass


class Bank:
    def __init__(self) -> None:
        self._balances: dict[str, int] = {"alice": 100, "bob": 100}
        self._lock = threading.Lock()

    def transfer(self, source: str = "alice", target: str = "bob", amount: int = 10) -> None:
        with self._lock:
            if self._balances.get(source, 0) < amount:
                raise InsufficientFunds(source)
            self._balances[source] -= amount
            self._balances[target] = self._balances.get(target, 0) + amount

    def deposit(self, account: str, amount: int) -> int:
        with self._lock:
            self._balances[account] = self._balances.get(account, 0) + amount
            return self._balances[account]

    def total(self) -> int:
        with self._lock:
            return sum(self._balances.values())
