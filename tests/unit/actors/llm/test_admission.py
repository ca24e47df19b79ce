"""No request without money for the worst that it can cost."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.actors.llm.admission import TOKENS_LEAST, Admission, room_in
from cleveragents.domain.budget import Limit, Scopes
from cleveragents.domain.errors import BudgetExceeded, SetupError
from cleveragents.domain.money import Money
from cleveragents.providers.cost_tracker import CostTracker
from cleveragents.providers.pricing import Price, PriceTable

PRICES = PriceTable({"test:m": Price(input_mtok=1, output_mtok=2)})


@dataclass
class Asked:
    model: str = "test:m"
    tokens_max: int = 4_000


class Purse:
    def __init__(self, *limits):
        self.tracker = CostTracker(limits=limits)

    def reserve(self, amount, *, model=None):
        return self.tracker.reserve(amount, Scopes(plan="p", model=model))


def test_worst_case_is_promised_on_all_scopes():
    purse = Purse(Limit("plan", 1, name="p"))
    admitted = Admission(PRICES).admit(purse, Asked(), 1_000, may_lower=True)
    assert admitted.tokens_max == 4_000
    assert admitted.held.upper_bound == Money.of("0.009")
    assert purse.tracker.balance("model", "test:m").promised == Money.of("0.009")


@given(st.integers(min_value=0, max_value=10**10), st.integers(min_value=0, max_value=3_000))
def test_longest_answer_that_fits_is_asked_for_and_never_more(limit_pico, bound):
    limit = Money(limit_pico)
    purse = Purse(Limit("plan", limit, name="p"))

    def worst(tokens):
        return PRICES.worst_case("test:m", bound, tokens)

    try:
        admitted = Admission(PRICES).admit(purse, Asked(), bound, may_lower=True)
    except BudgetExceeded:
        assert worst(TOKENS_LEAST) > limit
        assert purse.tracker.balance("plan", "p").promised == Money(0)
        return
    assert worst(admitted.tokens_max) <= limit
    assert admitted.tokens_max == 4_000 or worst(admitted.tokens_max + 1) > limit


def test_each_scope_may_lower_it_once_more():
    purse = Purse(Limit("plan", "0.005", name="p"), Limit("model", "0.003", name="test:m"))
    admitted = Admission(PRICES).admit(purse, Asked(), 0, may_lower=True)
    assert admitted.tokens_max == 1_500


def test_short_answers_are_not_made_shorter_than_they_are_of_use():
    with pytest.raises(BudgetExceeded):
        Admission(PRICES).admit(
            Purse(Limit("plan", "0.0001", name="p")), Asked(tokens_max=100), 0, may_lower=True
        )


def test_what_others_take_meanwhile_does_not_let_it_try_for_ever():
    class Greedy(Purse):
        def reserve(self, amount, *, model=None):
            room = self.tracker.balance("plan", "p").remaining
            if room > Money(10**9):
                self.tracker.record_usage(Money(room.pico // 10), Scopes(plan="p"))
            return super().reserve(amount, model=model)

    purse = Greedy(Limit("plan", "0.008", name="p"))
    with pytest.raises(BudgetExceeded):
        Admission(PRICES).admit(purse, Asked(), 0, may_lower=True)
    assert purse.tracker.balance("plan", "p").promised == Money(0)


def test_model_without_a_price_is_refused():
    with pytest.raises(SetupError) as caught:
        Admission(PRICES).admit(Purse(), Asked("test:unknown"), 0, may_lower=True)
    assert caught.value.code == "CA1004"


def test_refusal_that_does_not_say_leaves_no_room():
    assert room_in(BudgetExceeded("no")) == Money(0)
