"""What exact budgets cost, and what inexact ones let through.

`record_usage` against a bare locked integer add; reserve and settle over 6 scopes against
a minimal yardstick that does the same with one lock and integer lists; and 200 actors on
one dollar, beside LiteLLM's BudgetManager as documented and a check-then-record tracker.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Final

from _yardstick import Goals, LockedAdd, best_seconds, in_threads
from cleveragents.domain.budget import Limit, ScopeKind, Scopes
from cleveragents.domain.errors import BudgetExceeded
from cleveragents.domain.money import Money
from cleveragents.providers.cost_tracker import CostTracker

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS: Final = 50_000
ACTORS: Final = 200
CALL_S: Final = 0.02
WIDE: Final = 1_000_000


class ListLedger:
    """The yardstick pair: one lock, integer lists, no names, days, states or errors."""

    def __init__(self, scopes: int) -> None:
        self._lock = threading.Lock()
        self._spent = [0] * scopes
        self._held = [0] * scopes
        self._limit = [10**18] * scopes

    def reserve(self, amount: int, scopes: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """Check all, then hold all."""
        with self._lock:
            for scope in scopes:
                if self._spent[scope] + self._held[scope] + amount > self._limit[scope]:
                    raise BudgetExceeded("Over")
            for scope in scopes:
                self._held[scope] += amount
        return amount, scopes

    def settle(self, promise: tuple[int, tuple[int, ...]], actual: int) -> None:
        """Turn what was held into what was spent."""
        amount, scopes = promise
        with self._lock:
            for scope in scopes:
                self._held[scope] -= amount
                self._spent[scope] += actual


def times(count: int, call: Callable[[], object]) -> Callable[[], None]:
    """Return a loop over one call."""

    def loop() -> None:
        for _ in range(count):
            call()

    return loop


def measure_records(goals: Goals) -> None:
    """Compare `record_usage` with the bare add, alone and contended."""
    print("\nrecord_usage, ratio to a bare locked integer add into a dict (1.00 = as fast)")
    bare, tracker, scoped = LockedAdd(), CostTracker(WIDE), CostTracker(WIDE)
    scopes = Scopes(plan="p", session="s", actor="a", model="m")
    money = Money(10_000)
    for threads in (1, 4, 16):
        count = CALLS // threads
        seconds = best_seconds(
            {
                "bare": in_threads(threads, times(count, lambda: bare.add("today", 10_000))),
                "money": in_threads(threads, times(count, lambda: tracker.record_usage(money))),
                "float": in_threads(threads, times(count, lambda: tracker.record_usage(1e-8))),
                "scoped": in_threads(
                    threads, times(count, lambda: scoped.record_usage(money, scopes))
                ),
            }
        )
        label = f"{threads} thread{'s' * (threads > 1)}"
        goals.at_least(f"record_usage(Money), {label}", seconds["bare"] / seconds["money"], 0.5)
        print(
            f"         float, exactly converted {seconds['bare'] / seconds['float']:.2f}, "
            f"Money on 6 scopes {seconds['bare'] / seconds['scoped']:.2f}"
        )


def measure_pairs(goals: Goals) -> None:
    """Compare reserve and settle over 6 scopes with the yardstick pair."""
    print("\nreserve + settle over 6 scopes, ratio to the yardstick pair")
    lists = ListLedger(6)
    kinds: tuple[ScopeKind, ...] = ("month", "plan", "session", "actor", "model")
    tracker = CostTracker(WIDE, limits=[Limit(kind, WIDE) for kind in kinds])
    scopes = Scopes(plan="p", session="s", actor="a", model="m")
    numbers = tuple(range(6))
    bound, actual = Money(10_000), Money(9_000)
    for threads in (1, 4, 16):
        count = CALLS // threads
        seconds = best_seconds(
            {
                "lists": in_threads(
                    threads,
                    times(count, lambda: lists.settle(lists.reserve(10_000, numbers), 9_000)),
                ),
                "ours": in_threads(
                    threads, times(count, lambda: tracker.reserve(bound, scopes).settle(actual))
                ),
            }
        )
        label = f"{threads} thread{'s' * (threads > 1)}"
        goals.at_least(f"reserve + settle, {label}", seconds["lists"] / seconds["ours"], 0.6)


def calls_made(try_call: Callable[[], bool]) -> int:
    """Let 200 actors call until they are refused; return how many calls were made."""
    made: list[int] = []

    def act() -> None:
        calls = 0
        while try_call():
            calls += 1
        made.append(calls)

    in_threads(ACTORS, act)()
    return sum(made)


def ours() -> int:
    """Reserve, call, settle."""
    tracker = CostTracker(daily_budget=1.00)

    def try_call() -> bool:
        try:
            reservation = tracker.reserve(0.01)
        except BudgetExceeded:
            return False
        time.sleep(CALL_S)
        reservation.settle(0.01)
        return True

    return calls_made(try_call)


def check_then_record() -> int:
    """Ask, call, add up under a lock: how budgets are usually kept."""
    lock = threading.Lock()
    spent = [0.0]

    def try_call() -> bool:
        with lock:
            if spent[0] >= 1.00:
                return False
        time.sleep(CALL_S)
        with lock:
            spent[0] += 0.01
        return True

    return calls_made(try_call)


def litellm_budget_manager() -> int:
    """LiteLLM's BudgetManager, asked and updated as its documentation shows."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network at import
    from litellm import BudgetManager, ModelResponse, Usage

    manager = BudgetManager(project_name="cleveragents-benchmark")
    user = "actors"
    manager.create_budget(total_budget=1.00, user=user)
    # 1,000 output tokens of this model cost 0.01 USD in LiteLLM's own price table.
    reply = ModelResponse(
        model="gpt-4o",
        usage=Usage(prompt_tokens=0, completion_tokens=1_000, total_tokens=1_000),
    )

    def try_call() -> bool:
        if manager.get_current_cost(user=user) > manager.get_total_budget(user):
            return False
        time.sleep(CALL_S)
        manager.update_cost(completion_obj=reply, user=user)
        return True

    return calls_made(try_call)


def measure_overshoot(goals: Goals) -> None:
    """Count the calls that 200 actors make on 1.00 USD with calls of 0.01 USD."""
    print(f"\n{ACTORS} actors, 1.00 USD, calls of 0.01 USD and {CALL_S * 1000:.0f} ms: calls made")
    goals.exactly("CostTracker", ours(), 100)
    print(f"         check, then record: {check_then_record()}")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # it writes a file here
        print(f"         LiteLLM BudgetManager: {litellm_budget_manager()}")


def main() -> None:
    """Measure, print and judge."""
    goals = Goals()
    measure_records(goals)
    measure_pairs(goals)
    measure_overshoot(goals)
    goals.finish()


if __name__ == "__main__":
    main()
