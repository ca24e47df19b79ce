"""Between the two accounts the money is nowhere: a total read then is wrong, updates are lost."""

from __future__ import annotations


class InsufficientFunds(Exception):
    pass


class Bank:
    def __init__(self) -> None:
        self._balances: dict[str, int] = {"alice": 100, "bob": 100}

    def transfer(self, source: str = "alice", target: str = "bob", amount: int = 10) -> None:
        if self._balances.get(source, 0) < amount:
            raise InsufficientFunds(source)
        self._balances[source] -= amount
        self._balances[target] = self._balances.get(target, 0) + amount

    def deposit(self, account: str, amount: int) -> int:
        self._balances[account] = self._balances.get(account, 0) + amount
        return self._balances[account]

    def total(self) -> int:
        return sum(self._balances.values())
