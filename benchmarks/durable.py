"""What durable acknowledgements cost: many callers in one commit against one commit for each.

The yardstick writes the same row with the same settings (WAL, `synchronous=FULL`) and commits
each alone; ours acknowledges 200 waiting threads after shared commits, chained events included.

How much sharing wins depends on the disk. Where a commit takes 4.5 ms, as on the disk that the
goal of 40x was set on, it is measured in a program whose syncs wait for so long. This machine's
own disk may be so fast that no program of threads comes near 40x: then the bound is how often per
second 200 threads can hand something to another thread and wait for its word, with nothing written
at all, and ours is to reach a good part of that. Records of money, which change six accounts each,
are told beside events, and not judged.
"""

from __future__ import annotations

import queue
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from _slow_disk import can_be_slow, slower_by
from _yardstick import Goals
from cleveragents.domain.budget import Scopes
from cleveragents.domain.money import Money
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.infrastructure.transaction import Transaction

SECONDS: Final = 3.0
THREADS: Final = 200
BODY: Final = "x" * 200
#: What one commit took on the disk that the goal was set on: 222 in a second.
COMMIT_S: Final = 1 / 222
#: What is not the sync of such a commit: a processor that slept meanwhile begins slowly.
AWAKE_S: Final = 0.0005
SLOW: Final = "--slow"


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


def handed_over() -> float:
    """Return how often per second threads can wait for the word of one other, and no more."""
    waiting: queue.SimpleQueue[threading.Lock | None] = queue.SimpleQueue()

    def answer() -> None:
        while (one := waiting.get()) is not None:
            one.release()

    def ask() -> None:
        latch = threading.Lock()
        latch.acquire()
        waiting.put(latch)
        latch.acquire()

    answering = threading.Thread(target=answer)
    answering.start()
    rate = per_second(ask, THREADS)
    waiting.put(None)
    answering.join()
    return rate


def append(tx: Transaction) -> int:
    """Append one event of the same size."""
    return tx.event("benchmark", {"body": BODY}, at=0.0)


def shared(folder: Path) -> tuple[float, float]:
    """Return events, and records of money on 6 scopes, per second, of 200 waiting threads."""
    scopes = Scopes(plan="p", session="s", actor="a", model="m")
    with Store(folder / "events.db") as store:
        events = per_second(lambda: store.write(append), THREADS)
    with Store(folder / "money.db") as store, DurableCostTracker(store) as tracker:
        cost = Money(10_000)
        records = per_second(lambda: tracker.record_usage(cost, scopes), THREADS)
    return events, records


def on_a_slow_disk(alone: float) -> int:
    """Measure again where a commit takes as long as where the goal was set."""
    with slower_by(COMMIT_S - AWAKE_S - 1 / alone) as environment:
        again = (sys.executable, __file__, SLOW)
        return subprocess.run(again, env=environment, check=False).returncode


def main() -> None:
    """Measure all of it in one run."""
    goals, is_slow = Goals(), SLOW in sys.argv
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        alone = one_commit_each(Path(folder))
        events, records = shared(Path(folder))
    print(f"{'a slow' if is_slow else 'this'} disk, acknowledged per second:")
    print(f"  one commit each {alone:,.0f} ({1e3 / alone:.2f} ms for one)")
    print(f"  {THREADS} waiting threads: events {events:,.0f}, records on 6 scopes {records:,.0f}")
    print(f"  that is {events / alone:.1f} and {records / alone:.1f} times as many")
    if is_slow or 1 / alone >= COMMIT_S - AWAKE_S:
        goals.at_least("durable acknowledgements, 200 threads, ratio", events / alone, 40)
        goals.finish()
    handing = handed_over()
    print(f"  {THREADS} threads that are only answered {handing:,.0f}: {handing / alone:.1f} times")
    goals.at_least("share of what handing over alone allows", events / handing, 0.3)
    if not can_be_slow():
        sys.exit("a slow disk needs Linux and a C compiler: the goal of 40 was not measured")
    if on_a_slow_disk(alone):
        sys.exit(1)
    goals.finish()


if __name__ == "__main__":
    main()
