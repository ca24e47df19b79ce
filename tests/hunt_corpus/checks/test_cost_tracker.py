from __future__ import annotations

from decimal import Decimal

from cost_tracker import CostTracker


def test_costs_add_up():
    tracker = CostTracker()
    tracker.record_usage(0.5)
    assert tracker.record_usage(0.25) == Decimal("0.75")
    assert tracker.get_daily_spend() == Decimal("0.75")


def test_budget_is_enforced():
    tracker = CostTracker(daily_budget=1.0)
    tracker.record_usage(0.9)
    assert tracker.check_daily_budget()
    assert not tracker.check_daily_budget(0.2)
