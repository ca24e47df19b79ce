"""Purses of attempts, on the books of a cost tracker."""

from __future__ import annotations

import pytest

from cleveragents.application.attempts import Payer
from cleveragents.domain.budget import Limit
from cleveragents.domain.errors import BudgetExceeded
from cleveragents.domain.money import Money
from cleveragents.domain.plan import Budget, CommandActor, Node, Plan
from cleveragents.domain.plan_options import BudgetLimit, NodeBudget
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.purses import TrackerPurses
from cleveragents.infrastructure.store import Store
from cleveragents.providers.cost_tracker import CostTracker

PAYER = Payer(plan_id="p", node="n", actor="llm")


@pytest.fixture
def tracker(tmp_path):
    with Store(tmp_path / "state.db") as store, DurableCostTracker(store) as tracker:
        yield tracker


def test_bill_is_put_in_place_of_what_stood_for_a_promise_once(tracker):
    told = []
    purse = TrackerPurses(tracker).open(PAYER, told.append)
    held = purse.reserve("0.5")
    held.abandon()
    assert tracker.balance("plan", "p").spent == Money.of("0.5")
    for _ in range(2):
        purse.correct(held.id, Money.of("0.1"))
    assert tracker.balance("plan", "p").spent == Money.of("0.1")
    assert told == [Money.of("0.5"), Money.of("0.1") - Money.of("0.5")]
    purse.correct("r-nobody", Money.of("0.1"))
    assert tracker.balance("plan", "p").spent == Money.of("0.1")


def test_promise_that_was_abandoned_stays_so_when_its_block_ends(tracker):
    purse = TrackerPurses(tracker).open(PAYER, lambda _: None)
    with purse.reserve("0.5") as held:
        held.abandon()
    assert tracker.balance("plan", "p").spent == Money.of("0.5")
    with purse.reserve("0.5"):
        pass
    assert tracker.balance("plan", "p").promised == Money(0)


def test_books_in_memory_know_no_bills_of_dead_processes():
    tracker = CostTracker()
    purse = TrackerPurses(tracker).open(PAYER, lambda _: None)
    assert purse.reserve("0.5").id is None
    purse.correct("r-1", Money.of("0.1"))
    assert tracker.balance("plan", "p").spent == Money(0)


def plan_of(node_usd=None, plan_usd=None):
    node_budget = None if node_usd is None else NodeBudget(max_usd=node_usd)
    nodes = [Node(name=name, actor=CommandActor("true"), budget=node_budget) for name in "nm"]
    soft = BudgetLimit(kind="plan", name="p", max_usd="0.01", hard=False)
    each = BudgetLimit(kind="session", max_usd="0.02")
    budget = None if plan_usd is None else Budget(max_usd=plan_usd, limits=(soft, each))
    return Plan(goal="Spend", nodes=tuple(nodes), budget=budget)


def open_purse(purses, node="n"):
    return purses.open(Payer(plan_id="p", node=node, actor="llm"), lambda _: None)


def test_node_that_is_overspent_stops_itself_and_no_other(tracker):
    purses = TrackerPurses(tracker)
    purses.set_budget("p", plan_of(node_usd=1, plan_usd=9))
    open_purse(purses).record(Money.of(2), model="openai:m")
    with pytest.raises(BudgetExceeded, match="The budget of node `n` is overspent") as caught:
        open_purse(purses)
    assert caught.value.facts["scope"] == "label:node=p/n"
    open_purse(purses, "m")
    open_purse(purses, "m").record(Money.of(1))  # as much as it may, and no more


def test_plan_that_another_process_began_is_refused_too(tracker):
    TrackerPurses(tracker).set_budget("p", plan_of(plan_usd=1))
    resumed = TrackerPurses(tracker)
    open_purse(resumed).record(2)
    for purses in (resumed, TrackerPurses(tracker)):
        with pytest.raises(BudgetExceeded, match="The budget of plan `p` is overspent"):
            open_purse(purses, "m")


def test_budget_that_was_raised_or_lifted_lets_the_plan_go_on(tracker):
    purses = TrackerPurses(tracker)
    purses.set_budget("p", plan_of(plan_usd=None, node_usd=1))
    open_purse(purses).record(2)
    tracker.set_limit(Limit("label", 3, name="node=p/n"))
    open_purse(purses).record(2)
    tracker.remove_limit(Limit("label", 3, name="node=p/n"))
    open_purse(purses).record(2)
    assert tracker.balance("label", "node=p/n").spent == Money.of(6)


def test_refusal_of_another_account_keeps_its_own_hint(tracker):
    purses = TrackerPurses(tracker)
    purses.set_budget("p", plan_of(node_usd=1))
    tracker.set_limit(Limit("plan", "0.5", name="p"))
    with pytest.raises(BudgetExceeded) as caught:
        open_purse(purses).reserve("0.7")
    assert caught.value.hint.startswith("Raise the limit of plan `p`")


def test_held_money_is_settled_released_or_kept_charged_with_its_block(tracker):
    told = []
    purse = TrackerPurses(tracker).open(PAYER, told.append)
    with purse.reserve("0.5", model="openai:m") as held:
        held.settle("0.2")
    purse.reserve("0.5").release()
    assert tracker.balance("plan", "p").spent == Money.of("0.2")
    with pytest.raises(KeyError), purse.reserve("0.3"):
        raise KeyError
    assert tracker.balance("plan", "p").spent == Money.of("0.5")
    assert tracker.balance("model", "openai:m").spent == Money.of("0.2")
    assert told == [Money.of("0.2"), Money.of("0.3")]
