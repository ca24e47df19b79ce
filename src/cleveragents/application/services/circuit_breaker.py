"""A circuit breaker per name: pause what keeps failing, then try it with one call.

closed     every call is admitted; the threshold-th failure in a row opens it
open       every call is refused until the pause is over
half_open  one call, the probe, is in flight; everybody else is refused
           it succeeds: closed; it fails: open again, and the pause doubles
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, ParamSpec, TypeAlias, TypeVar

from cleveragents.domain.errors import CircuitOpen, RequestError
from cleveragents.domain.event import tell

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CircuitBreaker", "CircuitState", "StateChange", "Status"]

P = ParamSpec("P")
T = TypeVar("T")

Status: TypeAlias = Literal["closed", "open", "half_open"]

#: A time that is over by every clock.
_OVER: Final = -math.inf


@dataclass(frozen=True, slots=True)
class CircuitState:
    """How one name stood at one moment."""

    name: str
    status: Status
    #: Failures in a row.
    failures: int
    #: Pauses in a row, this one included; 0 when closed.
    rounds: int
    #: How long callers are still refused; 0.0 when the next one would be admitted.
    retry_after_s: float
    #: A probe is in flight and its lease has not lapsed.
    probing: bool


@dataclass(frozen=True, slots=True)
class StateChange:
    """One change of one name, told to `on_change`.

    From open to open is a new round: a caller without a permit failed after the pause.
    Changes that two threads make at the same moment may be told in either order.
    """

    name: str
    before: Status
    after: Status
    failures: int
    retry_after_s: float
    #: When it happened, by the breaker's clock.
    at: float


@dataclass(frozen=True, slots=True)
class _Round:
    """One pause of a name that is not closed, and the probe that ends it."""

    number: int
    pause_s: float
    #: The end of the pause; while a probe is in flight, the end of its lease.
    refused_until: float
    #: The permit of the probe that is in flight.
    probe: int | None = None

    @property
    def status(self) -> Status:
        return "open" if self.probe is None else "half_open"


def _monotonic() -> float:
    # Looked up at each call, so that a test may put another clock into `time`.
    return time.monotonic()


class CircuitBreaker:
    """Counts failures per name and pauses a name that keeps failing; share one between threads.

    Every method is atomic, from any number of threads, with or without an interpreter lock;
    `call` is an admission, the call, and a report. No report is lost, at most one probe per name
    is admitted at a time, and no lock is held while a call, a listener or the clock runs.

    A permit is a number, the generation at which a call was admitted.
    A report with a permit counts only while the state that admitted the call still lasts:
    what a call from before the trip, a replaced probe or a call from before a reset reports late
    changes nothing. Report each permit once. A report without a permit always counts.

    Names without failures cost no lock. `_view` holds the names with failures and the generation
    in one immutable tuple, replaced as a whole, at most once per locked section. So whoever reads
    it without the lock happens wholly before or wholly after that section. A clean name has
    nothing to clear and nothing to refuse: a success returns at once, and an admission is the
    generation beside which the name was found clean. Generations only grow, and a probe and a
    name that closes again start a new one: no two states of a name share a permit.

    The breaker remembers one number for each name that was ever paused or reset.
    """

    def __init__(  # noqa: PLR0913  # options of one machine, each with a default
        self,
        failure_threshold: int = 3,
        *,
        pause_s: float = 30.0,
        pause_s_max: float = 600.0,
        probe_lease_s: float = 60.0,
        clock: Callable[[], float] = _monotonic,
        on_change: Callable[[StateChange], object] | None = None,
    ) -> None:
        if type(failure_threshold) is not int or failure_threshold < 1:
            raise RequestError(
                f"`failure_threshold` must be a whole number from 1, got {failure_threshold!r}",
                facts={"failure_threshold": failure_threshold},
                hint="Pass how many failures in a row open the breaker, such as 3",
            )
        _refuse_unless_seconds("pause_s", pause_s)
        _refuse_unless_seconds("pause_s_max", pause_s_max, least_s=pause_s)
        _refuse_unless_seconds("probe_lease_s", probe_lease_s)
        self._failure_threshold = failure_threshold
        self._pause_s = pause_s
        self._pause_s_max = pause_s_max
        self._probe_lease_s = probe_lease_s
        self._clock = clock
        self._on_change = on_change
        # guards: _failures, _disabled, _rounds, _since, _floor, and the writes of _view
        self._lock = threading.Lock()
        self._failures: dict[str, int] = {}
        self._disabled: set[str] = set()  # the names that are not closed; each has its _Round
        self._rounds: dict[str, _Round] = {}
        # A closed name counts reports with permits from this generation on; the others from _floor.
        self._since: dict[str, int] = {}
        self._floor = 1
        self._view: tuple[frozenset[str], int] = (frozenset(), 1)

    def acquire(self, name: str) -> int | None:
        """Return a permit to call, or None when refused; report or release it afterwards."""
        troubled, generation = self._view
        if name not in troubled:
            return generation
        entry = self._enter(name)
        return entry if isinstance(entry, int) else None

    def record_success(self, name: str, permit: int | None = None) -> None:
        """Clear the count and re-enable the name; with a permit, only if that is still current."""
        if name not in self._view[0]:
            return
        now = self._clock()
        with self._lock:
            if self._failures.get(name) is None or not self._current_locked(name, permit):
                return
            change = self._clear_locked(name, now)
            generation = self._publish_locked()
            if change is not None:
                self._since[name] = generation
        self._tell(change)

    def record_failure(self, name: str, permit: int | None = None) -> None:
        """Count a failure; the threshold-th in a row pauses the name.

        With a permit it counts only if that is still current; a probe's failure starts the next
        round. Without one it always counts. While the name is paused or a probe is in flight it
        does no more than that; after them, its caller was the probe in effect.
        """
        now = self._clock()
        with self._lock:
            if not self._current_locked(name, permit):
                return
            failures = self._failures.get(name, 0) + 1
            self._failures[name] = failures
            current = self._rounds.get(name)
            if current is None:
                opens = failures >= self._failure_threshold
            else:
                opens = permit is not None or now >= current.refused_until
            change = self._open_locked(name, now) if opens else None
            if failures == 1:
                self._publish_locked()
        self._tell(change)

    def release(self, name: str, permit: int) -> None:
        """Give a permit back without a verdict: the call was cancelled, or its time was up.

        After a probe's release the next caller is the probe, at once.
        """
        if name not in self._view[0]:
            return
        now = self._clock()
        with self._lock:
            current = self._rounds.get(name)
            if current is None or current.probe != permit:
                return
            self._rounds[name] = replace(current, refused_until=_OVER, probe=None)
            change = self._change_locked(name, "half_open", now)
        self._tell(change)

    def call(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function if the name is admitted, report how it ended, and return its result.

        An exception is a failure. What is not an `Exception` (cancelled, interrupted) says nothing
        about the name: it releases the permit. A refusal raises `CircuitOpen`.
        """
        troubled, permit = self._view
        if name in troubled:
            entry = self._enter(name)
            if not isinstance(entry, int):
                raise _refusal(entry)
            permit = entry
        try:
            result = function(*args, **kwargs)
        except Exception:
            self.record_failure(name, permit)
            raise
        except BaseException:
            self.release(name, permit)
            raise
        if name in self._view[0]:
            self.record_success(name, permit)
        return result

    def is_open(self, name: str) -> bool:
        """Say whether `acquire` would refuse now; asking never uses up the probe."""
        return self.retry_after_s(name) > 0.0

    def retry_after_s(self, name: str) -> float:
        """Return how long the name is still refused; 0.0 when it would be admitted."""
        if name not in self._view[0]:
            return 0.0
        now = self._clock()
        with self._lock:
            return self._state_locked(name, now).retry_after_s

    def snapshot(self) -> tuple[CircuitState, ...]:
        """Return all names with failures, sorted; every other name is closed without any."""
        now = self._clock()
        with self._lock:
            return tuple(self._state_locked(name, now) for name in sorted(self._failures))

    def reset(self, name: str) -> None:
        """Close the name and forget its failures; reports of calls admitted before are ignored."""
        now = self._clock()
        with self._lock:
            change = self._clear_locked(name, now)
            self._since[name] = self._publish_locked()
        self._tell(change)

    def reset_all(self) -> None:
        """Close all names at one moment, as `reset` does one."""
        now = self._clock()
        with self._lock:
            before = [(name, self._rounds[name].status) for name in sorted(self._disabled)]
            for state in (self._failures, self._disabled, self._rounds, self._since):
                state.clear()
            self._floor = self._publish_locked()
            changes = [self._change_locked(name, status, now) for name, status in before]
        for change in changes:
            self._tell(change)

    def _enter(self, name: str) -> int | CircuitState:
        """Admit a name with failures, as the probe if need be; or return the state that refuses."""
        now = self._clock()
        with self._lock:
            current = self._rounds.get(name)
            if current is None:
                return self._view[1]
            if now < current.refused_until:
                return self._state_locked(name, now)
            permit = self._publish_locked()
            self._rounds[name] = replace(
                current, refused_until=now + self._probe_lease_s, probe=permit
            )
            # A probe whose lease lapsed is replaced: half-open before and after.
            replaced = current.probe is not None
            change = None if replaced else self._change_locked(name, "open", now)
        self._tell(change)
        return permit

    def _current_locked(self, name: str, permit: int | None) -> bool:
        if permit is None:
            return True
        current = self._rounds.get(name)
        if current is not None:
            return permit == current.probe
        return permit >= self._since.get(name, self._floor)

    def _open_locked(self, name: str, now: float) -> StateChange:
        last = self._rounds.get(name)
        if last is None:
            self._disabled.add(name)
            following = _Round(1, self._pause_s, now + self._pause_s)
        else:
            pause_s = min(2 * last.pause_s, self._pause_s_max)
            following = _Round(last.number + 1, pause_s, now + pause_s)
        self._rounds[name] = following
        return self._change_locked(name, "closed" if last is None else last.status, now)

    def _clear_locked(self, name: str, now: float) -> StateChange | None:
        self._failures.pop(name, None)
        self._disabled.discard(name)
        last = self._rounds.pop(name, None)
        return None if last is None else self._change_locked(name, last.status, now)

    def _publish_locked(self) -> int:
        generation = self._view[1] + 1
        self._view = (frozenset(self._failures), generation)
        return generation

    def _state_locked(self, name: str, now: float) -> CircuitState:
        failures = self._failures.get(name, 0)
        current = self._rounds.get(name)
        if current is None:
            return CircuitState(name, "closed", failures, 0, 0.0, probing=False)
        retry_after_s = max(0.0, current.refused_until - now)
        probing = current.probe is not None and retry_after_s > 0.0
        return CircuitState(
            name, current.status, failures, current.number, retry_after_s, probing=probing
        )

    def _change_locked(self, name: str, before: Status, now: float) -> StateChange:
        after = self._state_locked(name, now)
        return StateChange(name, before, after.status, after.failures, after.retry_after_s, now)

    def _tell(self, change: StateChange | None) -> None:
        if change is not None:
            tell(self._on_change, change)


def _refuse_unless_seconds(option: str, value: object, *, least_s: float = 0.0) -> None:
    if isinstance(value, int | float) and 0.0 < value < math.inf and value >= least_s:
        return
    rule = f"finite and at least `pause_s`, {least_s} s" if least_s else "finite and above 0 s"
    raise RequestError(
        f"`{option}` must be {rule}, got {value!r}",
        facts={option: value},
        hint=f"Pass `{option}` in seconds, such as {least_s or 30.0}",
    )


def _refusal(state: CircuitState) -> CircuitOpen:
    failures = "1 failure" if state.failures == 1 else f"{state.failures} failures in a row"
    return CircuitOpen(
        f"`{state.name}` is paused after {failures}",
        facts={
            "name": state.name,
            "status": state.status,
            "failures": state.failures,
            "rounds": state.rounds,
            "retry_after_s": state.retry_after_s,
        },
        hint=f"Try again in {math.ceil(state.retry_after_s)} s, or `reset` it if the cause is gone",
    )
