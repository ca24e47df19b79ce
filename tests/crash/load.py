"""A process under load that tells what was acknowledged, until somebody kills it.

Run as `python load.py STORE THREADS [FAULT N]`: it writes one line to stdout after each
acknowledgement. With a fault point and a number it kills itself at the n-th time it gets there.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import threading
from pathlib import Path

from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
from cleveragents.application.services.plan_execution_context import PlanExecutionContext
from cleveragents.domain.budget import Scopes
from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.money import Money
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal
from cleveragents.infrastructure.store import Store


def say(*words: object) -> None:
    # One write below PIPE_BUF is whole or not there.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def dying_at(point: str, number: int):
    passed = itertools.count(1)

    def fault(reached: str) -> None:
        if reached == point and next(passed) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault


def work(tracker, errors, plan, name: str) -> None:
    chance = random.Random(name)
    scopes = Scopes(plan="p", actor=name)
    with plan.changeset(actor=name) as changeset:
        for turn in itertools.count():
            reservation = tracker.reserve(Money(1000), scopes)
            say("reserved", reservation.id)
            bill = Money(chance.randrange(1200))
            reservation.settle(bill)
            say("settled", reservation.id, bill.pico)
            key = f"{name}-{turn}"
            tracker.record_usage(bill, scopes, key=key)
            say("recorded", key, bill.pico)
            record = errors.record_error("p", ValueError(f"{name} {turn}"), actor=name)
            say("error", record.seq)
            plan.record_change(ChangeEntry.create(f"{name}/{turn}.txt", f"{turn}\n", actor=name))
            say("change", changeset, f"{name}/{turn}.txt")


def main() -> None:
    path, threads, *fault = sys.argv[1:]
    store = Store(Path(path), fault=dying_at(fault[0], int(fault[1])) if fault else None)
    tracker = DurableCostTracker(store, daily_budget=1000, lease_s=0.5)
    errors = ErrorRecoveryService(journal=SqliteErrorJournal(store))
    plan = PlanExecutionContext(plan_id="p", changeset_store=SqliteChangesetStore(store))
    say("ready")
    prefix = os.urandom(3).hex()
    for number in range(int(threads)):
        threading.Thread(target=work, args=(tracker, errors, plan, f"{prefix}-{number}")).start()


if __name__ == "__main__":
    main()
