"""Cards of the price table are published whole, and none is lost, in every order of two threads."""

from __future__ import annotations

import pytest

from cleveragents.domain.money import Money
from cleveragents.domain.usage import Usage
from cleveragents.providers import pricing
from cleveragents.providers.pricing import Price, PriceTable
from proofs.racekit import prove, refute, without_lock

ONE_TOKEN = Usage(input_tokens=1)
PRICES = {
    "cheap": Price(input_mtok=1, output_mtok=1),
    "dear": Price(input_mtok=2, output_mtok=2),
}
CARDS = {model: pricing._own_card(price) for model, price in PRICES.items()}
COST = {"cheap": Money(1_000_000), "dear": Money(2_000_000)}


@pytest.fixture(autouse=True)
def _cards_are_made(monkeypatch):
    """Compiling is pure and shares nothing; left in, it would make a million orders of nothing."""
    made = {price.input_mtok: CARDS[model] for model, price in PRICES.items()}
    monkeypatch.setattr(pricing, "_own_card", lambda price: made[price.input_mtok])


class MemberTwin(PriceTable):
    """Racy: asks `in` before it publishes, which one of the strategies does not see."""

    def _compile(self, model):
        card = CARDS[model]
        if model not in self._cards:
            self._cards = {**self._cards, model: card}
        return card


def _table(kind=PriceTable):
    return lambda: kind(PRICES)


def _cost_of(model):
    return lambda table: table.cost_of(model, ONE_TOKEN)


def _worst_case(model):
    return lambda table: table.worst_case(model, 1, 0)


def _holds(*models):
    def holds(arena):
        answers = [arena.returned[index] for index in range(len(models))]
        kept = all(arena.subject._cards.get(model) is not None for model in models)
        return kept and answers == [COST[model] for model in models]

    return holds


def test_no_card_is_lost_when_two_models_are_priced_first_at_the_same_moment():
    prove(_table(), [_cost_of("cheap"), _cost_of("dear")], _holds("cheap", "dear"))


def test_a_model_that_two_threads_price_first_costs_both_the_same():
    prove(_table(), [_cost_of("dear"), _cost_of("dear")], _holds("dear", "dear"))


def test_a_worst_case_and_a_cost_keep_both_cards():
    prove(_table(), [_worst_case("cheap"), _cost_of("dear")], _holds("cheap", "dear"))


def test_two_worst_cases_keep_both_cards():
    prove(_table(), [_worst_case("cheap"), _worst_case("dear")], _holds("cheap", "dear"))


def test_without_its_lock_a_card_is_lost():
    def racy():
        return without_lock(PriceTable(PRICES), "_cards_lock")

    refute(racy, [_cost_of("cheap"), _cost_of("dear")], _holds("cheap", "dear"))


def test_a_twin_that_asks_first_and_publishes_later_is_caught():
    refute(_table(MemberTwin), [_cost_of("cheap"), _cost_of("dear")], _holds("cheap", "dear"))
