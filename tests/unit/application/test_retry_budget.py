from __future__ import annotations

import pytest

from cleveragents.application.services.retry_budget import RetryBudget, RetryTerms
from cleveragents.domain.errors import SetupError

TERMS = RetryTerms(tokens=20, cost=10)


def test_a_retry_takes_from_all_buckets_or_from_none():
    budget = RetryBudget(TERMS)
    assert budget.draw(["plan"], 10) is None
    assert budget.draw(["plan", "provider"], 10) is None
    assert budget.draw(["provider", "plan"], 10) == "plan"
    assert (budget.left("plan"), budget.left("provider")) == (0, 10)


def test_successes_pay_for_the_next_retry():
    budget = RetryBudget(TERMS)
    for _ in range(2):
        assert budget.draw(["plan"], 10) is None
    for _ in range(9):
        budget.give_back(["plan"])
    assert budget.draw(["plan"], 10) == "plan"
    budget.give_back(["plan"])
    assert budget.draw(["plan"], 10) is None


def test_a_full_bucket_takes_no_memory_and_never_overflows():
    budget = RetryBudget(TERMS)
    budget.give_back(["plan"])
    assert budget.left("plan") == 20
    budget.draw(["plan"], 1)
    budget.give_back(["plan"])
    assert budget._missing == {}


def test_a_forgotten_bucket_is_full_again():
    budget = RetryBudget(TERMS)
    budget.draw(["plan"], 10)
    budget.forget("plan")
    budget.forget("plan")
    assert budget.left("plan") == 20


@pytest.mark.parametrize("terms", [{"cost": 0}, {"refund": 1.5}, {"tokens": 5}])
def test_terms_that_break_a_rule_are_refused(terms):
    with pytest.raises(SetupError):
        RetryTerms(**terms)
