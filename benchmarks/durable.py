"""What durable acknowledgements cost: many callers in one commit against one commit for each.

The yardstick writes the same row with the same settings (WAL, `synchronous=FULL`) and commits
each alone; ours acknowledges 200 waiting threads after shared commits, chained events included.
How much sharing wins depends on what one sync of the disk costs, so both are printed.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from _yardstick import Goals
from cleveragents.domain.budget import Scopes
from cleveragents.domain.money import Money
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.store import Store, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS: Final = 3.0
THREADS: Final = 200
BODY: Final = "x" * 200


def per_second(work: Callable[[], object], threads: int) -> float:
    """Let threads repeat the work for a while and return how often they did it per second."""
    done = [0] * threads
    end = time.perf_counter() + SECONDS

    def repeat(index: int) -> None:
        while time.perf_counter() < end:
            work()
            done[index] += 1

    workers = [threading.Thread(target=repeat, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(done) / SECONDS


def one_commit_each(folder: Path) -> float:
    """Return records per second when each has a commit of its own."""
    connection = sqlite3.connect(folder / "alone.db", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, body TEXT)")

    def record() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO records (body) VALUES (?)", (BODY,))
        connection.execute("COMMIT")

    rate = per_second(record, threads=1)
    connection.close()
    return rate


def append(tx: Transaction) -> int:
    """Append one event of the same size."""
    return tx.event("benchmark", {"body": BODY}, at=0.0)


def main() -> None:
    """Measure both in one run on one disk."""
    goals = Goals()
    scopes = Scopes(plan="p", session="s", actor="a", model="m")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        alone = one_commit_each(Path(folder))
        with Store(Path(folder) / "events.db") as store:
            events = per_second(lambda: store.write(append), THREADS)
        with Store(Path(folder) / "money.db") as store, DurableCostTracker(store) as tracker:
            cost = Money(10_000)
            records = per_second(lambda: tracker.record_usage(cost, scopes), THREADS)
    print(f"acknowledged per second: one commit each {alone:,.0f} ({1e3 / alone:.2f} ms for one)")
    print(f"  {THREADS} waiting threads: events {events:,.0f}, records on 6 scopes {records:,.0f}")
    goals.at_least("durable acknowledgements, 200 threads, ratio", events / alone, 40)
    goals.finish()


if __name__ == "__main__":
    main()
