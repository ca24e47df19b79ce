"""The harness around frontrun that turns its answers into proofs.

frontrun alone gives false certificates (docs/testing.md lists the traps). So here:
every worker first writes one shared gate, otherwise the second never takes a lock first;
both strategies run, because each is blind where the other sees;
a search that ran out of budget, or that saw one order only, is a failure, not a proof.
"""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import frontrun
from frontrun._cooperative import is_patched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

S = TypeVar("S")

SEEDS = (1, 20)
ATTEMPTS_PER_SEED = 30
EXECUTIONS_MAX = 20_000
SECONDS_MAX = 60.0


@dataclass
class Arena(Generic[S]):
    """One explored run: the subject, the gate every worker writes, and what workers returned."""

    subject: S
    gate: int = -1
    returned: dict[int, Any] = field(default_factory=dict)
    raised: dict[int, BaseException] = field(default_factory=dict)


class NoLock(AbstractContextManager["NoLock"]):
    """What a racy twin holds instead of its lock."""

    def __exit__(self, *_: object) -> None:
        return None

    def acquire(self, *_: object) -> bool:
        return True

    def release(self) -> None:
        return None


class SleepUntilTheOtherEnds:
    """A condition for proofs: its wait ends with the other worker, and it must have been told.

    Nobody is left to tell it afterwards, so a wake that was not given by then is lost for ever.
    The real one would be polled here without an end. `ended` is released by the other worker.
    """

    def __init__(self, lock: Any, ended: threading.Semaphore) -> None:
        self._lock = lock
        self._ended = ended
        self._told = False

    def wait(self, timeout: float | None = None) -> None:
        assert timeout is None or timeout > 0
        self._told = False
        self._lock.release()
        self._ended.acquire()
        self._lock.acquire()
        assert self._told, "the wake is lost"

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        while not predicate():
            self.wait(timeout)
        return True

    def notify(self) -> None:
        self._told = True

    notify_all = notify


class SleepyThreading:
    """Stands for `threading` in a module whose workers sleep until the other ends."""

    Lock = staticmethod(threading.Lock)

    def __init__(self, ended: threading.Semaphore) -> None:
        self._ended = ended

    def Condition(self, lock: Any) -> SleepUntilTheOtherEnds:  # noqa: N802  # as in `threading`
        return SleepUntilTheOtherEnds(lock, self._ended)


def without_lock(subject: S, name: str) -> S:
    """Plant the bug: the same object with one of its locks replaced by nothing."""
    assert hasattr(getattr(subject, name), "acquire"), f"{name} is not a lock"
    setattr(subject, name, NoLock())
    return subject


def prove(
    setup: Callable[[], S],
    workers: Sequence[Callable[[S], Any]],
    holds: Callable[[Arena[S]], bool],
    *,
    raises: bool = False,
) -> None:
    """Fail unless `holds` in every order that both strategies find.

    A worker that raises breaks the proof unless `raises`, when `holds` judges `arena.raised`.
    """
    for label, result in _explore(setup, workers, _judge(holds, raises=raises)):
        assert result.property_holds, f"{label}: {result.explanation}"
        assert result.num_explored >= 2, f"{label} saw {result.num_explored} order: blind"


def refute(
    setup: Callable[[], S],
    workers: Sequence[Callable[[S], Any]],
    holds: Callable[[Arena[S]], bool],
    *,
    raises: bool = False,
) -> str:
    """Fail unless a strategy catches the planted bug; return the first that does."""
    for label, result in _explore(setup, workers, _judge(holds, raises=raises), planted=True):
        if result.property_holds is False:
            return label
    raise AssertionError("the planted bug was not found: this proof cannot fail")


def _judge(holds: Callable[[Arena[S]], bool], *, raises: bool) -> Callable[[Arena[S]], bool]:
    return lambda arena: (raises or not arena.raised) and holds(arena)


def _explore(
    setup: Callable[[], S],
    workers: Sequence[Callable[[S], Any]],
    invariant: Callable[[Arena[S]], bool],
    *,
    planted: bool = False,
) -> Iterator[tuple[str, Any]]:
    assert is_patched(), "run by `nox -s proofs`: without patched locks frontrun proves nothing"
    shared: dict[str, Any] = {
        "setup": lambda: Arena(setup()),
        "workers": [_gated(index, worker) for index, worker in enumerate(workers)],
        "invariant": invariant,
        "detect_io": False,
        "reproduce_on_failure": 0,
        # What is installed into site-packages is not traced unless it is named.
        "trace_packages": ["cleveragents", "cleveragents.*"],
    }
    started_s = time.perf_counter()
    dpor = frontrun.explore(
        **shared,
        strategy="dpor",
        preemption_bound=None,
        max_executions=EXECUTIONS_MAX,
        total_timeout=SECONDS_MAX,
    )
    elapsed_s = time.perf_counter() - started_s
    assert planted or dpor.num_explored < EXECUTIONS_MAX, "dpor ran out of executions"
    assert planted or elapsed_s < SECONDS_MAX, "dpor ran out of time"
    yield "dpor", dpor
    for seed in SEEDS:
        random = frontrun.explore(
            **shared, strategy="random", seed=seed, max_attempts=ATTEMPTS_PER_SEED
        )
        yield f"random seed {seed}", random


def _gated(index: int, worker: Callable[[S], Any]) -> Callable[[Arena[S]], None]:
    def run(arena: Arena[S]) -> None:
        arena.gate = index
        try:
            arena.returned[index] = worker(arena.subject)
        except Exception as error:  # noqa: BLE001  # judged by the invariant
            arena.raised[index] = error

    return run
