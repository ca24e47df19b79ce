"""What was acknowledged survives SIGKILL at any moment, and nothing is counted twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from cleveragents.domain.money import Money
from cleveragents.infrastructure.audit import verify_balances, verify_chain
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.store import Store
from cleveragents.testing import FrozenClock
from crash.harness import FOLDER, Told, check, kill_after, start

#: `nox -s crash` sets it to 1,000.
KILLS = int(os.environ.get("CLEVERAGENTS_KILLS", "20"))


def test_nothing_acknowledged_is_lost_in_random_kills(tmp_path):
    """One store lives through all kills: each process goes on where the dead ones stopped."""
    chance, told = random.Random(KILLS), Told()
    path = tmp_path / "state.db"
    for number in range(KILLS):
        process = start(path, 8)
        told.listen(kill_after(process, chance.randrange(1, 400)))
        if number % 10 == 9 or number == KILLS - 1:
            check(path, told)
    assert told.count > KILLS


@pytest.mark.parametrize("paid", [1, 30, 200])
def test_money_spent_from_slices_is_never_forgotten_by_a_kill(tmp_path, paid):
    """What was not written yet is inside what is left of the slices, and that is charged."""
    path, clock = tmp_path / "state.db", FrozenClock(datetime.now(UTC))
    with Store(path) as store, DurableCostTracker(store, daily_budget=100):
        pass
    process = subprocess.Popen(
        [sys.executable, str(FOLDER / "spender.py"), str(path), "8", "escrow", "loud"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()
    told = kill_after(process, paid).count("paid\n")
    clock.advance(60)
    with Store(path) as store, DurableCostTracker(store, clock=clock) as tracker:
        unconfirmed = tracker.expire()
        day = tracker.balance("month", f"{datetime.now(UTC):%Y-%m}")
        assert told * Money.of("0.01").pico <= day.spent.pico <= Money.of(100).pico
        assert day.promised == Money(0)
        for one in unconfirmed:
            one.release()
        with store.read() as connection:
            assert verify_balances(connection).holds
            assert verify_chain(connection).holds


@pytest.mark.parametrize("point", ["before-begin", "before-write", "before-commit", "after-commit"])
@pytest.mark.parametrize("time", [1, 7, 40])
def test_store_is_whole_after_death_at(tmp_path, point, time):
    told = Told()
    process = start(tmp_path / "state.db", 4, point, time)
    stdout, errors = process.communicate(timeout=60)
    assert process.returncode == -9, errors
    told.listen(stdout.splitlines())
    check(tmp_path / "state.db", told)
