"""Two costs recorded at once: both read the same total of the day, one of them is lost."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal


class CostTracker:
    """Track API cost per day and enforce a budget. Shared by all provider threads."""

    def __init__(self, daily_budget: float | None = None) -> None:
        self._daily_budget = None if daily_budget is None else Decimal(str(daily_budget))
        self._daily_costs: dict[str, Decimal] = {}

    def record_usage(self, cost: float, model: str = "default") -> Decimal:
        """Add a cost to today's total and return the new total."""
        today = self._today()
        current = self._daily_costs.get(today, Decimal(0))
        self._daily_costs[today] = current + Decimal(str(cost))
        return self._daily_costs[today]

    def get_daily_spend(self, day: str | None = None) -> Decimal:
        return self._daily_costs.get(day or self._today(), Decimal(0))

    def check_daily_budget(self, upcoming: float = 0.0) -> bool:
        if self._daily_budget is None:
            return True
        return self.get_daily_spend() + Decimal(str(upcoming)) <= self._daily_budget

    @staticmethod
    def _today() -> str:
        return datetime.now(tz=UTC).date().isoformat()
