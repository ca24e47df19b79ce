"""One request's run: the calling thread owns its state, workers only send it messages."""

from __future__ import annotations

import contextvars
import math
import queue
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from cleveragents.domain.errors import RequestError
from cleveragents.domain.fragment import Fragment
from cleveragents.domain.redaction import redact_to
from cleveragents.domain.strategy import StrategyReport, StrategyStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from cleveragents.application.services.circuit_breaker import CircuitBreaker
    from cleveragents.application.services.worker_pool import Submission, WorkerPool
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.stop_signal import StopSignal
    from cleveragents.domain.strategy import Strategy

__all__ = ["ExecutionLimits", "RunParts", "StrategyRun", "StrategyTask", "refuse_unless_seconds"]

#: Longer waits are a slip of the pen, and the longest waits overflow a C integer.
SECONDS_MAX: Final = 86_400.0
_DESCRIPTION_MAX: Final = 200

_Message: TypeAlias = "Callable[[], None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLimits:
    """How long strategies may take and how much one may give in one run."""

    #: For one strategy, from its start, unless it declares its own `timeout_s`.
    timeout_s: float = 10.0
    #: For a whole request, from the call.
    deadline_s: float = 30.0
    #: Beyond so many hung workers they are no longer replaced.
    stuck_workers_max: int = 16
    #: More fragments, or more characters in them, are taken for an endless stream.
    fragments_max: int = 10_000
    characters_max: int = 50_000_000

    def __post_init__(self) -> None:
        refuse_unless_seconds("timeout_s", self.timeout_s)
        refuse_unless_seconds("deadline_s", self.deadline_s)
        for option in ("stuck_workers_max", "fragments_max", "characters_max"):
            value = getattr(self, option)
            if type(value) is not int or value < 0:
                raise RequestError(f"`{option}` must be a whole number from 0, got {value!r}")


@dataclass(frozen=True, slots=True)
class RunParts:
    """What all runs of one executor share."""

    pool: WorkerPool
    breaker: CircuitBreaker
    clock: Callable[[], float]
    limits: ExecutionLimits


@dataclass(slots=True)
class StrategyTask:
    """One strategy's part of one request; only the request's thread changes it."""

    strategy: Strategy
    name: str
    timeout_s: float
    #: Its listeners belong to the strategy, so they are told aside.
    stop: StopSignal
    permit: int | None = None
    submission: Submission | None = None
    started_s: float | None = None
    report: StrategyReport | None = None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How a task ended, before it is judged."""

    status: StrategyStatus
    reason: str
    fragments: tuple[Fragment, ...] = ()


class StrategyRun:
    """Runs the strategies of one request and judges each of them once.

    The thread that calls `reports` owns all state, so there is no lock; it alone talks to the
    breaker. Others put functions into its mailbox, and it calls them.
    """

    def __init__(
        self,
        parts: RunParts,
        request: ContextRequest,
        tasks: Sequence[StrategyTask],
        deadline_s: float,
    ) -> None:
        self._parts = parts
        self._request = request
        self._tasks = tasks
        self._deadline_s = deadline_s
        self._until = parts.clock() + deadline_s
        self._mailbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()

    def cancel(self, reason: str) -> None:
        """Ask the run to return at once; from any thread."""
        self._mailbox.put(partial(self._on_cancel, reason))

    def reports(self) -> tuple[StrategyReport, ...]:
        """Run all strategies; return their reports in declared order, not past the deadline."""
        try:
            self._read_mail(0.0)
            for task in self._pending():
                self._start(task)
            while self._pending():
                self._read_mail(self._next_limit_s() - self._parts.clock())
                self._expire(self._parts.clock())
        finally:
            # Only an interrupt of this thread leaves a task here; its permit must not stay out.
            self._on_cancel("the caller was interrupted")
        return tuple(task.report for task in self._tasks if task.report is not None)

    def _pending(self) -> list[StrategyTask]:
        return [task for task in self._tasks if task.report is None]

    def _start(self, task: StrategyTask) -> None:
        task.permit = self._parts.breaker.acquire(task.name)
        if task.permit is not None:
            self._submit(task)
            return
        pause_s = self._parts.breaker.retry_after_s(task.name)
        reason = f"`{task.name}` is paused after failures, for {pause_s:.1f} s more"
        task.report = StrategyReport(task.name, StrategyStatus.SKIPPED, (), 0.0, reason, pause_s)

    def _submit(self, task: StrategyTask) -> None:
        # A context can be entered by one thread at a time, so each task has its own copy.
        work = partial(contextvars.copy_context().run, self._work, task)
        try:
            task.submission = self._parts.pool.submit(work)
        except RequestError:  # closed since the run began, which cancels its other tasks too
            self._judge(task, _cancelled("the executor was closed"))
        except RuntimeError as error:
            # The pool may have queued it before it found no thread: stopped, it ends at once.
            task.stop.stop("no worker took it")
            reason = f"No worker took `{task.name}` because of {_described(error)}"
            self._judge(task, _Outcome(StrategyStatus.NOT_STARTED, reason))
        else:
            task.submission.future.add_done_callback(partial(self._when_done, task))

    def _work(self, task: StrategyTask) -> None:
        """Run in a worker: it changes nothing here, it sends mail."""
        clock, mailbox = self._parts.clock, self._mailbox
        mailbox.put(partial(self._on_started, task, clock()))
        outcome = _found(task, self._request, self._parts.limits)
        mailbox.put(partial(self._on_finished, task, outcome, clock()))

    def _when_done(self, task: StrategyTask, future: Future[None]) -> None:
        if future.cancelled():
            self._mailbox.put(partial(self._on_evicted, task))

    # Mail: called by the owner; what comes after the verdict changes nothing.

    def _read_mail(self, wait_s: float) -> None:
        with suppress(queue.Empty):
            message = self._mailbox.get(timeout=max(0.0, wait_s))
            while True:
                message()
                message = self._mailbox.get_nowait()

    def _on_started(self, task: StrategyTask, now_s: float) -> None:
        task.started_s = now_s

    def _on_finished(self, task: StrategyTask, outcome: _Outcome, now_s: float) -> None:
        if task.report is not None:
            return
        if now_s - (task.started_s or 0.0) > task.timeout_s:
            outcome = _timed_out(task)
        self._judge(task, outcome, now_s)

    def _on_evicted(self, task: StrategyTask) -> None:
        # Hung workers were replaced while it still waited for one of them.
        if task.report is None:
            self._submit(task)

    def _on_cancel(self, reason: str) -> None:
        for task in self._pending():
            self._give_up(task, _cancelled(reason))

    # Limits and verdicts.

    def _next_limit_s(self) -> float:
        running = (
            task.started_s + task.timeout_s
            for task in self._pending()
            if task.started_s is not None
        )
        return min(self._until, *running, math.inf)

    def _expire(self, now_s: float) -> None:
        for task in self._pending():
            if task.started_s is not None and now_s - task.started_s > task.timeout_s:
                self._give_up(task, _timed_out(task))
            elif now_s >= self._until:
                reason = f"The request's {self._deadline_s:g} s were over before `{task.name}` was"
                self._give_up(task, _Outcome(StrategyStatus.OUT_OF_TIME, reason))

    def _give_up(self, task: StrategyTask, outcome: _Outcome) -> None:
        task.stop.stop(outcome.reason)
        status, reason = outcome.status, outcome.reason
        submission = task.submission
        if submission is None or submission.future.cancel():
            if status is StrategyStatus.OUT_OF_TIME:
                status = StrategyStatus.NOT_STARTED
                reason = f"No worker was free for `{task.name}` within {self._deadline_s:g} s"
        elif not self._parts.pool.give_up(submission):
            reason += f"; {self._parts.pool.stuck} workers are stuck, so its own is not replaced"
        self._judge(task, _Outcome(status, reason))

    def _judge(self, task: StrategyTask, outcome: _Outcome, now_s: float | None = None) -> None:
        ended_s = self._parts.clock() if now_s is None else now_s
        elapsed_s = 0.0 if task.started_s is None else ended_s - task.started_s
        task.report = StrategyReport(
            task.name, outcome.status, outcome.fragments, elapsed_s, outcome.reason
        )
        breaker = self._parts.breaker
        if task.permit is None:
            return  # cancelled before it was asked for
        if outcome.status is StrategyStatus.OK:
            breaker.record_success(task.name, task.permit)
        elif outcome.status.is_fault:
            breaker.record_failure(task.name, task.permit)
        else:
            breaker.release(task.name, task.permit)


def refuse_unless_seconds(option: str, value: object) -> None:
    """Refuse what is not a time that one can wait for."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value <= SECONDS_MAX
    ):
        raise RequestError(
            f"`{option}` must be above 0 s and at most {SECONDS_MAX:g} s, got {value!r}",
            facts={option: value},
        )


def _cancelled(reason: str) -> _Outcome:
    return _Outcome(StrategyStatus.CANCELLED, f"Cancelled: {_bounded(reason)}")


def _timed_out(task: StrategyTask) -> _Outcome:
    reason = f"`{task.name}` ran longer than its {task.timeout_s:g} s"
    return _Outcome(StrategyStatus.TIMED_OUT, reason)


def _found(task: StrategyTask, request: ContextRequest, limits: ExecutionLimits) -> _Outcome:
    """Call the strategy; whatever it does becomes an outcome."""
    try:
        task.stop.raise_if_stopped()
        found = task.strategy.find(request, task.stop)
        return _collected(task, found, limits)
    except BaseException as error:  # noqa: BLE001  # a strategy cannot hurt the request
        reason = f"`{task.name}` raised {_described(error)}"
        return _Outcome(StrategyStatus.FAILED, reason)


def _collected(task: StrategyTask, found: object, limits: ExecutionLimits) -> _Outcome:
    """Consume what the strategy gave, which may be an endless generator of anything."""
    if not isinstance(found, Iterable):
        return _rubbish(task, f"{_kind(found)}, which is no collection of fragments")
    fragments: list[Fragment] = []
    characters = 0
    for fragment in found:
        task.stop.raise_if_stopped()
        if not isinstance(fragment, Fragment):
            return _rubbish(task, f"{_kind(fragment)} where a fragment was due")
        characters += len(fragment.text)
        if len(fragments) == limits.fragments_max:
            return _rubbish(task, f"more than {limits.fragments_max:,} fragments")
        if characters > limits.characters_max:
            return _rubbish(task, f"more than {limits.characters_max:,} characters")
        fragments.append(fragment)
    count = "1 fragment" if len(fragments) == 1 else f"{len(fragments)} fragments"
    return _Outcome(StrategyStatus.OK, f"`{task.name}` found {count}", tuple(fragments))


def _rubbish(task: StrategyTask, what: str) -> _Outcome:
    return _Outcome(StrategyStatus.RUBBISH, f"`{task.name}` gave {what}")


def _described(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001  # even its text may be broken
        text = ""
    return _bounded(f"{kind}: {text}" if text.strip() else kind)


def _kind(value: object) -> str:
    return _bounded(type(value).__name__)


def _bounded(text: str) -> str:
    """Return foreign text in one short line, without its secrets."""
    return " ".join(redact_to(text, _DESCRIPTION_MAX).split())
