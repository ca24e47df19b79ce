"""One run of the calls of a trial, switched between threads exactly where a plan of turns says.

frontrun gives opcode tracing and locks that do not block; the order is ours. A plan is a few
turns, so it is short to read, to shrink and to keep: `((0, 7), (1, None))` lets thread 0 run
seven opcodes, then thread 1 to its end, then the rest.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from frontrun._cooperative import get_context, real_lock
from frontrun._deadlock import DeadlockError, SchedulerAbort
from frontrun._virtual_clock import VirtualClock, clock_scope
from frontrun.bytecode import BytecodeShuffler, OpcodeScheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, FrameType

__all__ = ["Abandoned", "Ended", "Point", "Ran", "Turn", "in_order", "run_turns"]

#: A thread that loops without end, or waits by looping, is sent to the back after so many opcodes.
TURN_OPCODES_MAX = 4_000
#: A run longer than this tells nothing: the calls do not end, or do too much for a search.
RUN_OPCODES_MAX = 30_000


class Abandoned(BaseException):
    """Ends a call whose run is over; no `except Exception` of the user's code holds it up."""


class Turn(NamedTuple):
    """Let one thread run so many opcodes; None until it ends or has to wait.

    Among whole calls, 0 lets it run one part: up to the next `yield` to the caller.
    """

    thread: int
    opcodes: int | None


class Point(NamedTuple):
    """One opcode that a thread was about to run."""

    thread: int
    code: CodeType
    offset: int
    line: int


class Ended(Enum):
    """How a run ended."""

    #: Every call returned or raised.
    WHOLE = "whole"
    #: A call had to wait for another, in a run that wants them one after the other.
    WAITED = "waited"
    #: All calls waited for one another.
    DEADLOCK = "deadlock"
    #: It took too long, or a call waits for something that is out of reach.
    HUNG = "hung"


@dataclass(slots=True)
class Ran:
    """What a run left behind."""

    ended: Ended
    points: list[Point] = field(default_factory=list)
    #: Whether a try for a lock was refused, or a time limit of a wait passed, because calls
    #: overlapped: a program says so by design.
    refused: bool = False
    #: Whether a call had to wait for another at some time.
    waited: bool = False
    #: In how many parts each call ran: a block of `with`, or a generator, has several.
    parts: tuple[int, ...] = ()

    def opcodes(self, thread: int) -> int:
        """Return how many opcodes a thread ran."""
        return sum(1 for point in self.points if point.thread == thread)


class OwnClock(VirtualClock):
    """Time that stands still but for a thread's own sleeps.

    A clock shared by all would make what one call reads depend on when the others sleep: the
    difference would look like a race.
    """

    __slots__ = ("_slept",)

    def __init__(self) -> None:
        super().__init__()
        self._slept: dict[int, float] = {}

    def now(self) -> float:
        """Return the time as the asking thread knows it."""
        return float(self._now + self._slept.get(self._asking(), 0.0))

    def advance_to(self, deadline: float) -> None:
        """Let the asking thread sleep until then."""
        asking = self._asking()
        if deadline != float("inf"):
            self._slept[asking] = max(self._slept.get(asking, 0.0), deadline - self._now)

    def let_pass(self, thread: int, deadline: float) -> None:
        """Let a time limit of a thread pass."""
        self._slept[thread] = max(self._slept.get(thread, 0.0), deadline - self._now)

    @staticmethod
    def _asking() -> int:
        context = get_context()
        return -1 if context is None else context[1]


class TurnScheduler(OpcodeScheduler):
    """Runs one thread at a time by handing a baton around.

    Only the thread that holds the baton reads or writes the fields here, so they need no lock.
    """

    def __init__(self, plan: Sequence[Turn], threads: int, *, whole: bool) -> None:
        super().__init__([], threads, virtual_clock=OwnClock(), clock_mode="virtual")
        self.trace_recorder: Any = self
        self.points: list[Point] = []
        self.refused = False
        self.waited = False
        self.parts = [1] * threads
        self._whole = whole
        self._turns = list(plan)
        self._left = 0
        self._in_opcode = False
        self._done: set[int] = set()
        self._progress = 0
        #: The progress of all when a thread last found that it has to wait.
        self._waits: dict[int, int] = {}
        self._batons = [real_lock() for _ in range(threads)]
        for baton in self._batons:
            baton.acquire()
        self._entered_lock = real_lock()  # guards: the count of those that entered
        self._entered = 0

    def enter(self, thread: int) -> None:
        """Wait for the first turn, which comes once all are there.

        If one could end before another starts, both could have the same identity.
        """
        with self._entered_lock:
            self._entered += 1
            complete = self._entered == self.num_threads
        if complete:
            self._batons[self._next(None)].release()
        self._batons[thread].acquire()
        self._go_on()

    def record_from_opcode(self, thread: int, frame: FrameType) -> None:
        """Note the opcode that is about to run; frontrun calls this before `wait_for_turn`."""
        self._in_opcode = True
        self.points.append(Point(thread, frame.f_code, frame.f_lasti, frame.f_lineno or 0))

    def wait_for_turn(self, thread_id: int) -> bool:
        """Go on, or let another go first: called before an opcode and by all that has to wait."""
        in_opcode, self._in_opcode = self._in_opcode, False
        self._go_on()
        if in_opcode:
            self._before_opcode(thread_id)
        else:
            self._has_to_wait(thread_id)
        return True

    def end_part(self, thread: int) -> None:
        """Let others go between two parts of a call, where the plan says so."""
        self.parts[thread] += 1
        if self._whole and self._left == 0:
            self._progress += 1
            self._hand_over(thread, self._next(thread))

    def sleep_until(
        self, thread_id: int, deadline: float | None = None, *, duration: float | None = None
    ) -> None:
        """Age the thread's own clock; sleeping is a moment like any other."""
        clock = self.virtual_clock
        assert isinstance(clock, OwnClock)
        until = clock.now() + (duration or 0.0) if deadline is None else deadline
        clock.let_pass(thread_id, until)

    def mark_done(self, thread_id: int) -> None:
        """Hand the baton on for good."""
        super().mark_done(thread_id)
        self._done.add(thread_id)
        self._progress += 1
        if self._error is None and len(self._done) < self.num_threads:
            self._batons[self._next(None)].release()

    def report_error(self, error: Exception) -> None:
        """End the run: every thread that waits for its turn wakes, and ends."""
        super().report_error(error)
        for baton in self._batons:
            if baton.locked():
                baton.release()

    def _go_on(self) -> None:
        if self._error is not None:
            raise Abandoned(str(self._error))

    def _stop(self, error: Exception) -> NoReturn:
        self.report_error(error)
        raise Abandoned(str(error))

    def _before_opcode(self, thread: int) -> None:
        self._progress += 1
        if self._progress > RUN_OPCODES_MAX:
            self._stop(TimeoutError("the calls do not end"))
        if self._whole:
            return
        if self._left == 0:
            self._hand_over(thread, self._next(thread))
        self._left -= 1

    def _has_to_wait(self, thread: int) -> None:
        self.waited = True
        timed = self._deadlines.timed_wait_deadline(thread)
        if self._whole:
            if timed is None:
                self._stop(DeadlockError("a call waits for another", ""))
            self._expire(thread)
            return
        self._waits[thread] = self._progress
        if not self._can_go():
            late = self._first_late()
            if late is None:
                self._stop(DeadlockError("every call waits for another", ""))
            # A thread whose time limit passed looks again, and finds that it passed.
            self.refused = True
            self._waits.pop(late)
            self._expire(late)
        self._hand_over(thread, self._next(thread))

    def _expire(self, thread: int) -> None:
        deadline = self._deadlines.timed_wait_deadline(thread)
        assert isinstance(self.virtual_clock, OwnClock)
        assert deadline is not None
        self.virtual_clock.let_pass(thread, deadline)

    def _first_late(self) -> int | None:
        limits = {
            thread: self._deadlines.timed_wait_deadline(thread)
            for thread in range(self.num_threads)
            if thread not in self._done
        }
        known = [(limit, thread) for thread, limit in limits.items() if limit is not None]
        return min(known)[1] if known else None

    def _hand_over(self, thread: int, following: int) -> None:
        if following != thread:
            self._batons[following].release()
            self._batons[thread].acquire()
            self._go_on()

    def _can_go(self) -> list[int]:
        """Return who may get on: who had to wait, and nothing happened since, may not."""
        return [
            thread
            for thread in range(self.num_threads)
            if thread not in self._done and self._waits.get(thread, -1) < self._progress
        ]

    def _next(self, current: int | None) -> int:
        """Choose by the plan, then in turn; never a thread that cannot get on."""
        able = self._can_go()
        while self._turns and self._turns[0].thread not in able:
            self._turns.pop(0)
        if self._turns:
            turn = self._turns.pop(0)
        else:
            later = [thread for thread in able if current is not None and thread > current]
            turn = Turn((later or able)[0], None)
        self._left = TURN_OPCODES_MAX if turn.opcodes is None else turn.opcodes
        return turn.thread


def in_order(order: Sequence[int]) -> tuple[Turn, ...]:
    """Return the plan that runs whole calls one after the other."""
    return tuple(Turn(thread, None) for thread in order)


def run_turns(
    plan: Sequence[Turn],
    threads: int,
    prepare: Callable[[], Sequence[Callable[[], None]]],
    *,
    whole: bool = False,
    hung_after_s: float = 5.0,
) -> Ran:
    """Prepare fresh calls, run each in a thread of its own by the plan, and say how it ended.

    The calls keep what they return and catch what they raise. With `whole`, a call that has to
    wait for another ends the run as `WAITED`.
    """
    scheduler = TurnScheduler(plan, threads, whole=whole)
    runner = BytecodeShuffler(scheduler, detect_io=False)
    with clock_scope(scheduler.virtual_clock), runner.patch_scope():
        calls = prepare()
        turns = [_in_turn(scheduler, *one) for one in enumerate(calls)]
        with contextlib.suppress(Abandoned, SchedulerAbort, DeadlockError, TimeoutError):
            runner.run(turns, timeout=hung_after_s)
    hung = any(thread.is_alive() for thread in runner.threads)
    error = scheduler._error  # noqa: SLF001  # the base class keeps it private
    ended = _ended(error, hung=hung, whole=whole)
    parts = tuple(scheduler.parts)
    return Ran(ended, scheduler.points, scheduler.refused, scheduler.waited, parts)


def _in_turn(scheduler: TurnScheduler, thread: int, call: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        scheduler.enter(thread)
        call()

    return run


def _ended(error: Exception | None, *, hung: bool, whole: bool) -> Ended:
    if error is None and not hung:
        return Ended.WHOLE
    if isinstance(error, DeadlockError):
        return Ended.WAITED if whole else Ended.DEADLOCK
    return Ended.HUNG
