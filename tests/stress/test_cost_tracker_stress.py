"""Real threads on `CostTracker`, all started at one barrier, switching as often as they can."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from cleveragents.domain.budget import Limit, Scopes
from cleveragents.domain.errors import BudgetExceeded
from cleveragents.domain.money import Money
from cleveragents.providers.cost_tracker import CostTracker
from cleveragents.testing import run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]


def test_20_threads_recording_0_00075_give_exactly_0_015():
    for seed in range(10):
        tracker = CostTracker()
        run_together(
            [lambda tracker=tracker: tracker.record_usage(0.00075)] * 20,
            restless=("cleveragents.providers",),
            seed=seed,
        )
        assert tracker.get_daily_spend() == Decimal("0.015")


def test_million_charges_of_20_threads_in_random_order_give_the_exact_total():
    tracker = CostTracker()
    chance = random.Random(11)
    kinds = [Money(chance.randrange(10**9)) for _ in range(1000)]
    shares = [chance.choices(kinds, k=50_000) for _ in range(20)]

    def spend(costs: list[Money]) -> None:
        for cost in costs:
            tracker.record_usage(cost)

    run_together([lambda costs=costs: spend(costs) for costs in shares])
    total = Money(sum(cost.pico for costs in shares for cost in costs))
    assert {one.spent for one in tracker.report()} == {total}


def test_200_actors_on_1_usd_with_calls_of_1_cent_make_exactly_100_calls():
    tracker = CostTracker(daily_budget=1.00, limits=[Limit("plan", 1)])
    scopes = Scopes(plan="p")

    def act() -> int:
        calls = 0
        while True:
            try:
                reservation = tracker.reserve(0.01, scopes)
            except BudgetExceeded:
                return calls
            reservation.settle(0.01)
            calls += 1

    assert sum(run_together([act] * 200)) == 100
    assert tracker.get_daily_spend() == 1


def test_every_way_out_of_a_reservation_leaves_the_books_balanced():
    tracker = CostTracker(limits=[Limit("actor", 10)])

    def act(number: int) -> int:
        chance = random.Random(number)
        scopes = Scopes(actor=f"a-{number % 4}", model=f"m-{number % 3}")
        spent = 0
        for turn in range(200):
            reservation = tracker.reserve(Money(1000), scopes)
            bill = chance.randrange(1500)
            way = chance.randrange(4)
            if way == 0:
                reservation.release()
            else:
                key = f"{number}-{turn}" if way == 1 else None
                reservation.settle(Money(bill), key=key)
                reservation.settle(Money(bill // 2), key=key)
                reservation.release()
                spent += bill
            if way == 3:
                tracker.record_usage(Money(bill), scopes, key=f"extra {number}-{turn}")
                tracker.record_usage(Money(bill), scopes, key=f"extra {number}-{turn}")
                spent += bill
        return spent

    total = Money(sum(run_together([lambda n=n: act(n) for n in range(16)])))
    report = tracker.report()
    assert all(one.promised == Money(0) for one in report)
    for kind in ("day", "month", "actor", "model"):
        assert sum(one.spent.pico for one in report if one.kind == kind) == total.pico
