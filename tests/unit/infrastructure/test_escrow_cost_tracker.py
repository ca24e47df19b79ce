from __future__ import annotations

import threading
from decimal import Decimal

import pytest

from cleveragents.domain.budget import Scopes
from cleveragents.domain.errors import BudgetExceeded, StoreError
from cleveragents.domain.money import Money
from cleveragents.infrastructure.audit import verify_balances
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.escrow_cost_tracker import EscrowCostTracker
from cleveragents.infrastructure.store import Store
from cleveragents.providers.reservation import Outcome, State
from cleveragents.testing import FrozenClock, run_together

PLAN = Scopes(plan="p")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "state.db") as store:
        yield store


def events(store: Store, kind: str) -> int:
    with store.read() as connection:
        return connection.execute("SELECT count(*) FROM events WHERE kind = ?", (kind,)).fetchone()[
            0
        ]


def quiet(store: Store, *arguments, **options) -> EscrowCostTracker:
    """A tracker whose flusher does not come in between."""
    return EscrowCostTracker(store, *arguments, flush_s=3600, patience_s=0.05, **options)


def test_many_calls_need_few_writes(store):
    with quiet(store, daily_budget=100) as tracker:
        for _ in range(1000):
            tracker.reserve("0.001", PLAN).settle("0.001")
        assert events(store, "money.reserved") < 10
        assert events(store, "money.drawn") == 0
        tracker.flush()
        assert events(store, "money.drawn") == 1
        assert tracker.spend_by("plan") == {"p": Money.of(1)}


def test_bills_that_another_thread_writes_right_now_are_counted(store, monkeypatch):
    """They are neither owed nor in the store: whoever asks waits for them."""
    held, seen = threading.Event(), threading.Event()
    with quiet(store, daily_budget=1) as tracker:
        tracker.reserve("0.10").settle("0.10")
        (source,) = tracker._slices.values()
        blocker = store.submit(lambda _: held.wait(30))
        flusher = threading.Thread(target=tracker.flush)
        flusher.start()
        while not source.writing and source.owed:
            threading.Event().wait(0.001)
        monkeypatch.setattr(tracker._stopping, "wait", lambda _: seen.set())
        asked = []

        def ask():
            asked.append(tracker.get_daily_spend())
            seen.set()

        asker = threading.Thread(target=ask)
        asker.start()
        assert seen.wait(30)
        held.set()
        for one in (flusher, asker):
            one.join(30)
        blocker.result()
        assert asked == [Decimal("0.10")]


def test_slices_shrink_near_the_limit_so_that_others_find_something(store):
    with quiet(store, daily_budget=1) as one, quiet(store) as other:
        one.reserve("0.01")
        with store.read() as connection:
            (held,) = connection.execute("SELECT max(held) FROM accounts").fetchone()
        assert held <= Money.of(1).pico // 16
        other.reserve("0.9").settle("0.9")


def test_last_cent_is_spendable_while_another_process_holds_an_idle_slice(store):
    """The one that would be refused asks, and the idle one gives back in its next flush."""
    with (
        EscrowCostTracker(store, 1, flush_s=0.01) as idle,
        EscrowCostTracker(store, flush_s=0.01) as needy,
    ):
        idle.reserve("0.01").settle("0.01")
        needy.reserve("0.99").settle("0.99")
        with pytest.raises(BudgetExceeded):
            needy.reserve("0.000000000001")
        assert needy.get_daily_spend() == 1


def test_slice_of_a_dead_process_is_charged_and_nothing_is_counted_twice(store):
    clock = FrozenClock()
    dead = quiet(store, 10, lease_s=5, clock=clock)
    reservation = dead.reserve(1, PLAN)
    dead.reserve("0.5", PLAN).settle("0.5")
    dead._stopping.set()
    clock.advance(6)
    with DurableCostTracker(store, clock=clock) as living:
        (lost,) = living.expire()
        assert lost.charged >= Money.of("1.5")
        reservation.settle("0.7")
        dead.flush()
        assert living.spend_by("plan")["p"] == lost.charged
        lost.settle("1.2")
        assert living.spend_by("plan")["p"] == Money.of("1.2")


def test_process_that_was_taken_for_dead_goes_on_with_a_new_slice(store):
    clock = FrozenClock()
    with quiet(store, 100, lease_s=5, clock=clock) as paused:
        paused.reserve(1, PLAN).settle(1)
        clock.advance(6)
        with DurableCostTracker(store, clock=clock) as living:
            living.expire()
            with paused._slices_lock:
                for one in paused._slices.values():
                    one.free = 0
            paused.reserve(2, PLAN).settle(2)
            paused.flush()
            assert living.spend_by("plan")["p"] >= Money.of(3)


def test_abandoned_call_is_listed_by_itself_and_can_be_corrected(store):
    with quiet(store, 10) as tracker:
        reservation = tracker.reserve(1, PLAN)
        reservation.abandon()
        assert (reservation.state, reservation.charged) == (State.UNCONFIRMED, Money.of(1))
        (listed,) = tracker.expire()
        listed.settle("0.25")
        assert tracker.spend_by("plan") == {"p": Money.of("0.25")}
        reservation.abandon()
        assert reservation.settle("0.25") is Outcome.REPEATED
        assert not reservation.renew()


def test_bill_above_its_slice_is_recorded_beside_it(store):
    with quiet(store, 1) as tracker:
        assert tracker.reserve("0.01").settle(5) is Outcome.OVERRUN
        assert tracker.get_daily_spend() == 5
        with pytest.raises(BudgetExceeded):
            tracker.reserve("0.01")


def test_bill_by_key_is_durable_at_once_and_counted_once(store):
    with quiet(store, 10) as tracker:
        one, two = tracker.reserve(1, PLAN), tracker.reserve(1, PLAN)
        assert one.settle(1, key="k") is Outcome.CHARGED
        assert two.settle(1, key="k") is Outcome.REPEATED
        assert two.release() is Outcome.KEPT
        assert tracker.spend_by("plan") == {"p": Money.of(1)}


def test_every_way_out_from_many_threads_leaves_the_books_balanced(store):
    with EscrowCostTracker(store, 1000, flush_s=0.005) as tracker:

        def act(number: int) -> int:
            spent = 0
            for turn in range(30):
                reservation = tracker.reserve(Money(1000), Scopes(actor=f"a{number % 3}"))
                bill = (number * 31 + turn * 17) % 1400
                if turn % 5 == 0:
                    reservation.release()
                    continue
                if turn % 7 == 0:
                    reservation.abandon()
                key = f"{number}-{turn}" if turn % 3 == 0 else None
                reservation.settle(Money(bill), key=key)
                reservation.settle(Money(bill // 2), key=key)
                reservation.release()
                spent += bill
            return spent

        total = sum(run_together([lambda n=n: act(n) for n in range(8)]))
        assert sum(one.pico for one in tracker.spend_by("actor").values()) == total
        assert all(one.promised == Money(0) for one in tracker.report())
    with store.read() as connection:
        assert verify_balances(connection).holds


def test_store_that_fails_keeps_the_bills_for_later(tmp_path):
    failing = []

    def fault(point: str) -> None:
        if failing and point == "before-commit":
            raise OSError("disk trouble")

    with Store(tmp_path / "state.db", fault=fault) as store, quiet(store, 10) as tracker:
        tracker.reserve(1, PLAN).settle(1)
        failing.append(True)
        with pytest.raises((OSError, StoreError)):
            tracker.flush()
        failing.clear()
        tracker.flush()
        assert tracker.spend_by("plan") == {"p": Money.of(1)}


def test_used_up_slice_of_a_process_that_ended_is_not_listed(store):
    with quiet(store, 10) as tracker:
        tracker.reserve(1, PLAN).settle(1)
        tracker.flush()
        tracker._give_back(idle_only=False)
        with tracker._slices_lock:
            tracker._slices.clear()  # as if the end of the slice came before its last bill
    with DurableCostTracker(store) as living:
        assert living.expire() == ()
