"""Runs context strategies concurrently, so that a bad one costs only its own fragments."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Self

from cleveragents.application.services.circuit_breaker import CircuitBreaker
from cleveragents.application.services.strategy_run import (
    ExecutionLimits,
    RunParts,
    StrategyRun,
    StrategyTask,
    refuse_unless_seconds,
)
from cleveragents.application.services.worker_pool import PoolFactory, WorkerPool, closed_error
from cleveragents.domain.errors import RequestError
from cleveragents.domain.fragment import refuse_unless_said
from cleveragents.domain.stop_signal import StopSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.strategy import Strategy, StrategyReport

__all__ = ["ExecutionLimits", "ParallelStrategyExecutor"]

WORKERS_MAX: Final = 256
_CLOSE_TIMEOUT_S: Final = 5.0


def _monotonic() -> float:
    # Looked up at each call, so that a test may put another clock into `time`.
    return time.monotonic()


class ParallelStrategyExecutor:
    """Runs strategies on a thread pool behind one circuit breaker; share one between threads.

    Each `run` answers by its deadline, in declared order, whatever strategies do in `find` and
    in the listeners of their stop signal, unless they hold the interpreter lock.
    A strategy that raises, hangs or gives rubbish is reported, counted by the breaker and costs
    only its own fragments; a paused one is reported as skipped. What is not its fault (cancelled,
    the request's deadline, no free worker) is not counted.

    `run` and `close` are safe from any number of threads: a run that begins before `close` is
    cancelled by it and returns, one that begins after it is refused.
    Python cannot end a thread: a strategy that ignores its stop signal, or a listener that hangs,
    keeps its thread, which `close` names, and which the interpreter waits for at exit.
    """

    def __init__(
        self,
        max_workers: int = 4,
        *,
        breaker: CircuitBreaker | None = None,
        limits: ExecutionLimits | None = None,
        clock: Callable[[], float] = _monotonic,
        pool_factory: PoolFactory = ThreadPoolExecutor,
    ) -> None:
        if type(max_workers) is not int or not 1 <= max_workers <= WORKERS_MAX:
            raise RequestError(f"`max_workers` must be 1 to {WORKERS_MAX}, got {max_workers!r}")
        self._limits = ExecutionLimits() if limits is None else limits
        self._breaker = CircuitBreaker() if breaker is None else breaker
        self._pool = WorkerPool(
            max_workers, stuck_max=self._limits.stuck_workers_max, pool_factory=pool_factory
        )
        self._parts = RunParts(self._pool, self._breaker, clock, self._limits)
        self._lock = threading.Lock()  # guards: _runs, _closed
        self._runs: dict[StrategyRun, threading.Event] = {}  # the event says that it has ended
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def breaker(self) -> CircuitBreaker:
        """The breaker that all runs share."""
        return self._breaker

    @property
    def stuck_workers(self) -> int:
        """How many threads are held by strategies that were given up, and by their listeners."""
        return self._pool.stuck

    def run(
        self,
        strategies: Iterable[Strategy],
        request: ContextRequest,
        *,
        timeout_s: float | None = None,
        deadline_s: float | None = None,
        stop: StopSignal | None = None,
    ) -> tuple[StrategyReport, ...]:
        """Run the strategies at once and return their reports in the order given.

        `timeout_s` holds for each strategy that declares none, from its start of running;
        `deadline_s` for the whole request, from now; `stop` cancels it from another thread.
        """
        timeout_s = self._limits.timeout_s if timeout_s is None else timeout_s
        deadline_s = self._limits.deadline_s if deadline_s is None else deadline_s
        refuse_unless_seconds("timeout_s", timeout_s)
        refuse_unless_seconds("deadline_s", deadline_s)
        tasks = _tasks(strategies, timeout_s, self._pool)
        run = StrategyRun(self._parts, request, tasks, deadline_s)
        ended = threading.Event()
        with self._lock:
            if self._closed:
                raise closed_error()
            self._runs[run] = ended
        forget = None if stop is None else stop.when_stopped(run.cancel)
        try:
            # Workers that were stuck for too many others may be replaceable by now.
            self._pool.renew()
            return run.reports()
        finally:
            if forget is not None:
                forget()
            with self._lock:
                del self._runs[run]
            ended.set()

    def close(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> tuple[str, ...]:
        """Refuse new work, end runs, join threads; return the names of those that still run.

        An empty tuple means that no thread is left. Closing twice is fine, also at once.
        """
        refuse_unless_seconds("timeout_s", timeout_s)
        until_s = time.monotonic() + timeout_s
        for ended in self._cancel_runs():
            # A run that ends may start threads to tell listeners; they are to be joined too.
            ended.wait(max(0.0, until_s - time.monotonic()))
        return self._pool.close(max(0.0, until_s - time.monotonic()))

    def _cancel_runs(self) -> tuple[threading.Event, ...]:
        """Refuse new runs and cancel the others; return what says of each that it has ended."""
        with self._lock:
            self._closed = True
            runs = tuple(self._runs.items())
        for run, _ in runs:
            run.cancel("the executor was closed")
        return tuple(ended for _, ended in runs)


def _tasks(
    strategies: Iterable[Strategy], timeout_s: float, pool: WorkerPool
) -> list[StrategyTask]:
    tasks = []
    for strategy in strategies:
        own_timeout_s = getattr(strategy, "timeout_s", None)
        if own_timeout_s is not None:
            refuse_unless_seconds("timeout_s", own_timeout_s)
        stop = StopSignal(aside=pool.aside)
        task = StrategyTask(strategy, strategy.name, own_timeout_s or timeout_s, stop)
        refuse_unless_said("name", task.name)
        tasks.append(task)
    names = [task.name for task in tasks]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RequestError(
            f"Two strategies are named `{twice[0]}`",
            hint="Give each strategy its own name; the breaker counts by it",
        )
    return tasks
