"""Several processes on one budget: exact, and what a shared commit wins over one for each call.

The yardstick asks the shared row for every call, in a transaction of its own:
`UPDATE … WHERE spent + held + x <= limit`, once to reserve and once to settle.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from _yardstick import Goals
from cleveragents.domain.errors import BudgetExceeded
from cleveragents.domain.money import Money
from cleveragents.infrastructure.audit import verify_balances
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.escrow_cost_tracker import EscrowCostTracker
from cleveragents.infrastructure.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier
    from typing import TypeAlias

    Work: TypeAlias = Callable[[Path, Barrier, multiprocessing.Queue[int]], None]

SECONDS: Final = 3.0
PROCESSES: Final = 2
THREADS: Final = 100
EXACT: Final = (8, 25)


def pairs_alone(path: Path, start: Barrier, results: multiprocessing.Queue[int]) -> None:
    """Reserve and settle in two transactions for each call."""
    connection = sqlite3.connect(path, timeout=30, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    start.wait()
    end, done = time.perf_counter() + SECONDS, 0
    while time.perf_counter() < end:
        connection.execute("UPDATE budget SET held = held + 1 WHERE spent + held + 1 <= amount")
        connection.execute("UPDATE budget SET held = held - 1, spent = spent + 1")
        done += 1
    results.put(done)


def pairs_shared(path: Path, start: Barrier, results: multiprocessing.Queue[int]) -> None:
    """Reserve and settle through the durable tracker, from many threads."""
    with Store(path) as store, DurableCostTracker(store) as tracker:
        cost, done = Money(1), [0] * THREADS

        def work(index: int) -> None:
            while time.perf_counter() < end:
                tracker.reserve(cost).settle(cost)
                done[index] += 1

        start.wait()
        end = time.perf_counter() + SECONDS
        in_threads_of(THREADS, work)
        results.put(sum(done))


def pairs_in_slices(path: Path, start: Barrier, results: multiprocessing.Queue[int]) -> None:
    """Reserve and settle from slices that this process drew."""
    with Store(path) as store, EscrowCostTracker(store) as tracker:
        cost, done = Money(1), 0
        start.wait()
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            for _ in range(100):
                tracker.reserve(cost).settle(cost)
            done += 100
        results.put(done)


def calls_until_refused(path: Path, start: Barrier, results: multiprocessing.Queue[int]) -> None:
    """Spend cents until the budget refuses, from many threads."""
    with Store(path) as store, EscrowCostTracker(store) as tracker:
        made = [0] * EXACT[1]

        def work(index: int) -> None:
            while True:
                try:
                    reservation = tracker.reserve("0.01")
                except BudgetExceeded:
                    return
                time.sleep(0.002)
                reservation.settle("0.01")
                made[index] += 1

        start.wait()
        in_threads_of(EXACT[1], work)
        results.put(sum(made))


def litellm_until_refused(path: Path, start: Barrier, results: multiprocessing.Queue[int]) -> None:
    """Spend the same with LiteLLM's BudgetManager, whose file is in this folder, as documented."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network at import
    from litellm import BudgetManager, ModelResponse, Usage

    os.chdir(path)
    manager = BudgetManager(project_name="cleveragents-benchmark")
    manager.create_budget(total_budget=1.00, user="actors")
    # 1,000 output tokens of this model cost 0.01 USD in LiteLLM's own price table.
    usage = Usage(prompt_tokens=0, completion_tokens=1_000, total_tokens=1_000)
    reply = ModelResponse(model="gpt-4o", usage=usage)
    made = [0] * EXACT[1]

    def work(index: int) -> None:
        while manager.get_current_cost(user="actors") <= manager.get_total_budget("actors"):
            time.sleep(0.002)
            manager.update_cost(completion_obj=reply, user="actors")
            made[index] += 1

    start.wait()
    in_threads_of(EXACT[1], work)
    results.put(sum(made))


def in_threads_of(count: int, work: Callable[[int], None]) -> None:
    """Run a function in threads, each with its number."""
    threads = [threading.Thread(target=work, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pydantic_ai_counts(_: Path, start: Barrier, results: multiprocessing.Queue[int]) -> None:
    """Count usage with pydantic-ai: in memory, without a limit across processes, not durable."""
    from pydantic_ai.usage import RequestUsage, RunUsage

    total, one = RunUsage(), RequestUsage(input_tokens=10, output_tokens=5)
    start.wait()
    end, done = time.perf_counter() + SECONDS, 0
    while time.perf_counter() < end:
        total.incr(one)
        done += 1
    results.put(done)


def together(target: Work, path: Path, count: int) -> int:
    """Run a function in several processes at once and add up what they did."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(count), context.Queue()
    processes = [context.Process(target=target, args=(path, start, results)) for _ in range(count)]
    for process in processes:
        process.start()
    total = sum(int(results.get(timeout=120)) for _ in processes)
    for process in processes:
        process.join()
    return total


def main() -> None:
    """Measure both in one run on one disk."""
    goals = Goals()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        with sqlite3.connect(folder / "alone.db") as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE budget (spent INTEGER, held INTEGER, amount INTEGER)")
            connection.execute("INSERT INTO budget VALUES (0, 0, 1000000000)")
        with Store(folder / "exact.db") as store, DurableCostTracker(store, daily_budget=1):
            pass
        with Store(folder / "shared.db") as store, DurableCostTracker(store, daily_budget=1000):
            pass
        made = together(calls_until_refused, folder / "exact.db", EXACT[0])
        theirs = None
        if find_spec("litellm") is not None:
            theirs = together(litellm_until_refused, folder, EXACT[0])
        counted = together(pydantic_ai_counts, folder, PROCESSES) / SECONDS
        alone = together(pairs_alone, folder / "alone.db", PROCESSES) / SECONDS
        shared = together(pairs_shared, folder / "shared.db", PROCESSES) / SECONDS
        drawn = together(pairs_in_slices, folder / "shared.db", PROCESSES) / SECONDS
        with Store(folder / "shared.db") as store, store.read() as connection:
            goals.exactly("the books balance after it", verify_balances(connection).reason, None)
    print(
        f"pairs per second of {PROCESSES} processes: {alone:,.0f} in a transaction for each call, "
        f"{shared:,.0f} acknowledged by shared commits, {drawn:,.0f} from slices"
    )
    made_by_litellm = "is not installed" if theirs is None else f"made {theirs} of 100 calls"
    print(
        f"peers: LiteLLM BudgetManager {made_by_litellm}; "
        f"pydantic-ai counts {counted:,.0f} times per second, in memory and without a limit"
    )
    goals.exactly("calls of 8 processes x 25 threads on 1.00 USD", made, 100)
    goals.at_least("pairs from slices, ratio to a transaction for each call", drawn / alone, 200)
    goals.finish()


if __name__ == "__main__":
    main()
