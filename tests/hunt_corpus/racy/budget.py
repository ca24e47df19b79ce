"""Both callers see enough money left; together they spend more than there is."""

from __future__ import annotations


class BudgetExceeded(Exception):
    pass


class Budget:
    """A limit on spending. Thread-safe."""

    def __init__(self, limit: int = 10) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, amount: int) -> int:
        if self.spent + amount > self.limit:
            raise BudgetExceeded(f"{amount} more than {self.limit - self.spent} left")
        self.spent += amount
        return self.limit - self.spent

    def refund(self, amount: int) -> None:
        self.spent = max(0, self.spent - amount)

    def remaining(self) -> int:
        return self.limit - self.spent
