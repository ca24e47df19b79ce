"""How the benchmarks measure: ratios in one run, contestants in turns, the best round of each."""

from __future__ import annotations

import gc
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROUNDS: Final = 9


class LockedAdd:
    """A bare locked integer add into a dict: the least that any safe tracker does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals = {"today": 0}

    def add(self, key: str, amount: int) -> None:
        """Add under the lock."""
        with self._lock:
            self._totals[key] += amount


def best_seconds(
    contestants: Mapping[str, Callable[[], object]], rounds: int = ROUNDS
) -> dict[str, float]:
    """Run each contestant in turns and return its best CPU time: noise only ever adds."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, work in contestants.items():
            gc.collect()
            started = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - started)
    return best


def in_threads(count: int, work: Callable[[], object]) -> Callable[[], None]:
    """Return a contestant that does the work in several threads at once."""

    def run() -> None:
        barrier = threading.Barrier(count)

        def start() -> None:
            barrier.wait()
            work()

        threads = [threading.Thread(target=start) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run


@dataclass
class Goals:
    """Collects what was measured against what was promised."""

    missed: int = 0

    def at_least(self, what: str, value: float, goal: float) -> None:
        """State a goal that is met from `goal` upwards."""
        self._state(what, f"{value:.2f}", f">= {goal:g}", met=value >= goal)

    def at_most(self, what: str, value: float, goal: float) -> None:
        """State a goal that is met from `goal` downwards."""
        self._state(what, f"{value:.2f}", f"<= {goal:g}", met=value <= goal)

    def exactly(self, what: str, value: object, goal: object) -> None:
        """State a goal that only one value meets."""
        self._state(what, str(value), f"== {goal}", met=value == goal)

    def finish(self) -> None:
        """End the program: exit code 1 when any goal was missed."""
        sys.exit(1 if self.missed else 0)

    def _state(self, what: str, value: str, goal: str, *, met: bool) -> None:
        self.missed += not met
        print(f"  {'ok    ' if met else 'MISSED'} {what:<58} {value:>9}   goal {goal}")
