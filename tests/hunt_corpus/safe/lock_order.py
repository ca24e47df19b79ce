"""The two locks are always taken in the same order."""

from __future__ import annotations

import threading


class Vault:
    def __init__(self) -> None:
        self._gold_lock = threading.Lock()
        self._cash_lock = threading.Lock()
        self.gold = 10
        self.cash = 10

    def sell_gold(self, amount: int = 1) -> int:
        with self._gold_lock:
            self.gold -= amount
            with self._cash_lock:
                self.cash += amount
                return self.cash

    def buy_gold(self, amount: int = 1) -> int:
        with self._gold_lock, self._cash_lock:
            self.cash -= amount
            self.gold += amount
            return self.gold
