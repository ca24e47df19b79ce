"""Every pair of methods of `CostTracker` is atomic: shown in all orders, and not by chance."""

from __future__ import annotations

import pytest

from cleveragents.domain.budget import Limit, Scopes
from cleveragents.domain.errors import BudgetExceeded
from cleveragents.domain.money import Money
from cleveragents.providers.cost_tracker import CostTracker
from cleveragents.testing import FrozenClock
from proofs.racekit import Arena, prove, refute, without_lock

ONE = Money.of(1)
SCOPES = Scopes(plan="p", actor="a")


class Books:
    """A tracker with one open reservation, as the explored calls find it."""

    def __init__(self, budget: int = 3) -> None:
        self.clock = FrozenClock()
        self.tracker = CostTracker(budget, limits=[Limit("plan", budget)], clock=self.clock)
        self.open = self.tracker.reserve(1, SCOPES, ttl_s=10)

    def totals(self) -> set[tuple[int, int]]:
        """What each scope has spent and promised, in whole dollars: all scopes must agree."""
        return {
            (one.spent.pico // 10**12, one.promised.pico // 10**12) for one in self.tracker.report()
        }


def racy_books(budget: int = 3) -> Books:
    books = Books(budget)
    without_lock(books.tracker, "_daily_costs_lock")
    return books


def record(books: Books) -> None:
    books.tracker.record_usage(ONE, SCOPES)


def record_plainly(books: Books) -> None:
    books.tracker.record_usage(ONE)


def record_by_key(books: Books) -> None:
    books.tracker.record_usage(ONE, SCOPES, key="k")


def reserve(books: Books) -> None:
    books.tracker.reserve(ONE, SCOPES)


def settle(books: Books) -> None:
    books.open.settle(ONE)


def settle_by_key(books: Books) -> None:
    books.open.settle(ONE, key="k")


def release(books: Books) -> None:
    books.open.release()


def abandon(books: Books) -> None:
    books.open.abandon()


def expire(books: Books) -> None:
    books.clock.advance(11)
    books.tracker.expire()


PAIRS = {
    "record+record": (record, record, {(2, 1)}),
    "record+reserve": (record, reserve, {(1, 2)}),
    "record+settle": (record, settle, {(2, 0)}),
    "record+release": (record, release, {(1, 0)}),
    "record+expire": (record, expire, {(2, 0)}),
    "reserve+reserve": (reserve, reserve, {(0, 3)}),
    "reserve+settle": (reserve, settle, {(1, 1)}),
    "settle+settle": (settle, settle, {(1, 0)}),
    "settle+abandon": (settle, abandon, {(1, 0)}),
    "settle+expire": (settle, expire, {(1, 0)}),
    "settle+key": (settle_by_key, record_by_key, {(1, 0)}),
    "key+key": (record_by_key, record_by_key, {(1, 1)}),
    # Whichever comes last: a bill after a release counts, a release after a bill does not.
    "settle+release": (settle, release, {(1, 0)}),
    # A release after the charge for silence takes it back; before it there is nothing to charge.
    "release+expire": (release, expire, {(0, 0)}),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_pair_of_calls_loses_nothing_on_any_scope_in_every_order(pair):
    first, second, totals = PAIRS[pair]
    prove(Books, [first, second], lambda arena: arena.subject.totals() == totals)


def test_plain_records_add_up_in_every_order():
    prove(
        CostTracker,
        [lambda tracker: tracker.record_usage(ONE)] * 3,
        lambda arena: arena.subject.get_daily_spend() == 3,
    )


def limit_holds(arena: Arena[Books]) -> bool:
    """Room for one more dollar: exactly one of two gets it, the other is told."""
    refused = list(arena.raised.values())
    assert [type(one) for one in refused] == [BudgetExceeded]
    return arena.subject.totals() == {(0, 2)}


def test_exactly_one_of_two_gets_the_last_dollar_in_every_order():
    prove(lambda: Books(budget=2), [reserve, reserve], limit_holds, raises=True)


def test_new_limit_and_reservation_never_leave_the_limit_broken():
    """Either the limit comes first and refuses, or the promise was made before it."""
    prove(
        Books,
        [reserve, lambda books: books.tracker.set_limit(Limit("plan", 1))],
        lambda arena: arena.subject.totals() == ({(0, 1)} if arena.raised else {(0, 2)}),
        raises=True,
    )


def test_threshold_is_reported_once_in_every_order():
    def setup() -> tuple[CostTracker, list[str]]:
        notices: list[str] = []
        limit = Limit("day", 2, warn_at=(0.5,))
        return CostTracker(limits=[limit], on_notice=lambda one: notices.append(one.code)), notices

    prove(
        setup,
        [lambda pair: pair[0].record_usage(ONE)] * 2,
        lambda arena: arena.subject[1] == ["CA2104"],
    )


def test_day_is_opened_once_by_two_first_callers_of_the_day():
    def setup() -> Books:
        books = Books()
        books.clock.advance(86_400)
        return books

    prove(
        setup,
        [record_plainly, record_plainly],
        lambda arena: arena.subject.tracker.get_daily_spend() == 2,
    )


@pytest.mark.parametrize("pair", ["record+record", "record+settle", "reserve+settle", "key+key"])
def test_twin_without_its_lock_is_caught(pair):
    first, second, totals = PAIRS[pair]
    refute(racy_books, [first, second], lambda arena: arena.subject.totals() == totals)


def test_twin_without_its_lock_breaks_the_limit_and_is_caught():
    refute(lambda: racy_books(budget=2), [reserve, reserve], limit_holds, raises=True)


class CheckThenRecord:
    """How others do it, in frontrun's blind spot: `in` is not seen as a read."""

    def __init__(self) -> None:
        self.spent: dict[str, int] = {}

    def spend(self) -> None:
        if "today" not in self.spent:
            self.spent["today"] = 0
        self.spent["today"] += 1


def test_twin_in_the_blind_spot_is_caught():
    refute(
        CheckThenRecord,
        [CheckThenRecord.spend] * 2,
        lambda arena: arena.subject.spent["today"] == 2,
    )
