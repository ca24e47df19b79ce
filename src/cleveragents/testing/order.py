"""Time and the order of threads, in the hands of a test."""

from __future__ import annotations

import random
import sys
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

__all__ = ["FrozenClock", "Gate", "run_together"]

T = TypeVar("T")

#: How often a restless thread gives way, of all instructions.
_GIVE_WAY: Final = 0.2
#: Long enough for others to come a few instructions further.
_PAUSE_S_MAX: Final = 0.0003
#: A Sunday at noon, UTC: far from midnight and from a month's end.
_NOON: Final = datetime(2026, 11, 15, 12, tzinfo=UTC)


class FrozenClock:
    """A clock that moves only when told; call it to read seconds since the epoch."""

    def __init__(self, start: datetime = _NOON) -> None:
        self._lock = threading.Lock()  # guards: _now
        self._now = start.timestamp()

    def __call__(self) -> float:
        """Return the frozen time in seconds."""
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        with self._lock:
            self._now += seconds

    def set(self, moment: datetime) -> None:
        """Put the clock to a moment."""
        with self._lock:
            self._now = moment.timestamp()


class Gate:
    """Holds callers at a known point until the test opens it; every wait ends by `timeout_s`."""

    def __init__(self, timeout_s: float = 10.0) -> None:
        self._timeout_s = timeout_s
        self._changed = threading.Condition()  # guards: _arrived, _opened
        self._arrived = 0
        self._opened = False

    def pass_through(self) -> None:
        """Announce the arrival and wait until the gate is open."""
        with self._changed:
            self._arrived += 1
            self._changed.notify_all()
            self._wait_until(lambda: self._opened, "the gate to open")

    def wait_for(self, arrivals: int) -> None:
        """Wait until this many callers stand at the gate."""
        with self._changed:
            self._wait_until(lambda: self._arrived >= arrivals, f"{arrivals} arrivals")

    def open(self) -> None:
        """Let everybody through, now and later."""
        with self._changed:
            self._opened = True
            self._changed.notify_all()

    def _wait_until(self, reached: Callable[[], bool], what: str) -> None:
        if not self._changed.wait_for(reached, self._timeout_s):
            raise TimeoutError(f"Waited {self._timeout_s} s for {what}")


def run_together(
    jobs: Sequence[Callable[[], T]],
    *,
    restless: tuple[str, ...] = (),
    seed: int = 0,
    timeout_s: float = 60.0,
) -> list[T]:
    """Start every job in its own thread at one barrier; return results in the order of the jobs.

    In modules named `restless`, such as `("cleveragents.",)` for all of ours, threads give way
    to each other between any two instructions: slow, and a missing lock soon shows.
    `seed` varies where they do.
    The first exception of a job is raised here; a job that hangs raises `TimeoutError`.
    """
    barrier = threading.Barrier(len(jobs))
    results: dict[int, T] = {}
    faults: list[BaseException] = []

    def work(index: int, job: Callable[[], T]) -> None:
        try:
            barrier.wait(timeout_s)
            results[index] = _restless(job, restless, f"{seed}/{index}") if restless else job()
        except BaseException as error:  # noqa: BLE001  # handed to the caller below
            faults.append(error)

    threads = [
        threading.Thread(target=work, args=(index, job), name=f"ca-together-{index}", daemon=True)
        for index, job in enumerate(jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout_s)
        if thread.is_alive():
            raise TimeoutError(f"`{thread.name}` still runs after {timeout_s} s")
    if faults:
        raise faults[0]
    return [results[index] for index in range(len(jobs))]


def _restless(job: Callable[[], T], modules: tuple[str, ...], seed: str) -> T:
    """Run a job under a tracer that lets others run before every few instructions."""
    chance = random.Random(seed)  # noqa: S311  # an order of threads, not a secret
    nothing = threading.Event()

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if not frame.f_globals.get("__name__", "").startswith(modules):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and chance.random() < _GIVE_WAY:
            nothing.wait(chance.random() * _PAUSE_S_MAX)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return job()
    finally:
        sys.settrace(before)
