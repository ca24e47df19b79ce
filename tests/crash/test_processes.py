"""Several processes on one file share one budget, exactly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cleveragents.domain.budget import Scopes
from cleveragents.domain.money import Money
from cleveragents.infrastructure.audit import verify_balances, verify_chain
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.store import Store
from cleveragents.testing import FrozenClock, run_together
from crash.harness import FOLDER

PROCESSES, THREADS = 8, 25


@pytest.mark.parametrize("mode", [(), ("escrow",)], ids=["commits", "slices"])
def test_8_processes_of_25_threads_on_1_usd_make_exactly_100_calls_of_1_cent(tmp_path, mode):
    path = tmp_path / "state.db"
    with Store(path) as store, DurableCostTracker(store, daily_budget=1.00):
        pass
    spenders = [
        subprocess.Popen(
            [sys.executable, str(FOLDER / "spender.py"), str(path), str(THREADS), *mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    for spender in spenders:
        assert spender.stdout.readline() == "ready\n"
    run_together([lambda one=one: one.stdin.write("go\n") or one.stdin.flush() for one in spenders])
    made = [int(spender.communicate(timeout=60)[0]) for spender in spenders]
    assert sum(made) == 100, made
    with Store(path) as store, store.read() as connection:
        assert verify_chain(connection).holds
        assert verify_balances(connection).holds
        states = {row[0] for row in connection.execute("SELECT state FROM reservations")}
        assert states <= {"settled", "released"}


def test_reservation_of_a_dead_process_is_charged_after_its_lease_and_can_be_corrected(tmp_path):
    clock = FrozenClock()
    with Store(tmp_path / "state.db") as store:
        dead = DurableCostTracker(store, 10, lease_s=5, clock=clock)
        dead.reserve(1, Scopes(plan="p"))
        dead._stopping.set()  # it beats no more, as if it had been killed
        with DurableCostTracker(store, clock=clock) as living:
            assert living.expire() == ()
            clock.advance(6)
            (lost,) = living.expire()
            assert lost.charged == Money.of(1)
            assert living.spend_by("plan") == {"p": Money.of(1)}
            lost.settle("0.25")
            assert living.expire() == ()
            assert living.spend_by("plan") == {"p": Money.of("0.25")}


def test_reservation_of_a_living_process_is_left_alone(tmp_path):
    clock = FrozenClock()
    with Store(tmp_path / "state.db") as store:
        one = DurableCostTracker(store, 10, lease_s=5, clock=clock)
        with one, DurableCostTracker(store, lease_s=5, clock=clock) as other:
            one.reserve(1)
            clock.advance(4)
            store.write(one._renew_lease)
            clock.advance(4)
            assert other.expire() == ()


def test_thresholds_and_limits_are_shared_between_trackers(tmp_path):
    notices = []
    with (
        Store(tmp_path / "state.db") as first,
        Store(tmp_path / "state.db") as second,
        DurableCostTracker(first, on_notice=notices.append) as one,
        DurableCostTracker(second, on_notice=notices.append) as other,
    ):
        from cleveragents.domain.budget import Limit

        one.set_limit(Limit("day", 1, hard=False, warn_at=(0.5,)))
        assert other.limits == one.limits
        other.record_usage("0.3")
        one.record_usage("0.3")
        other.record_usage("0.3")
        assert [one.code for one in notices] == ["CA2104"]
        assert one.get_daily_spend() == other.get_daily_spend()
