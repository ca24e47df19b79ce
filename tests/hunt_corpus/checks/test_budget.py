from __future__ import annotations

import pytest
from budget import Budget, BudgetExceeded


def test_budget_is_a_limit():
    budget = Budget(10)
    assert budget.spend(7) == 3
    with pytest.raises(BudgetExceeded):
        budget.spend(4)
    budget.refund(5)
    assert budget.remaining() == 8
