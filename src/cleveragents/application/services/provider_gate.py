"""One gate per provider: after a rate limit everybody waits at it, and one caller tries."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cleveragents.domain.error_record import is_seconds
from cleveragents.domain.errors import ProviderError, RequestError, SetupError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.domain.stop_signal import StopSignal

_DOUBLINGS_MAX: Final = 32
# Whoever sleeps longer looks again first: no platform can sleep for any number of seconds.
_SLEEP_S_MAX: Final = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GateTerms:
    """How long a gate stays closed, and how long its probe may take."""

    #: The pause after a limit that names no time; it doubles with each failed probe.
    pause_s: float = 1.0
    pause_s_max: float = 60.0
    #: A probe that has not reported for so long is replaced.
    lease_s: float = 60.0

    def __post_init__(self) -> None:
        for name in ("pause_s", "pause_s_max", "lease_s"):
            value = getattr(self, name)
            if not is_seconds(value) or value == 0:
                raise SetupError(f"`{name}` must be a number of seconds above 0, got {value!r}")
        if self.pause_s_max < self.pause_s:
            raise SetupError(f"`pause_s_max` must not be below `pause_s`, got {self.pause_s_max!r}")

    def growing_pause_s(self, failed_probes: int) -> float:
        """Return the pause after so many probes failed in a row."""
        return min(self.pause_s_max, self.pause_s * 2.0 ** min(failed_probes, _DOUBLINGS_MAX))


@dataclass(frozen=True, slots=True)
class Pass(AbstractContextManager["Pass"]):
    """The right to make one call; report what became of it.

    As a context manager it gives the right back at the end, however the block ends, so that the
    next caller may try. What became of the call may be told after the block, too: a report counts
    once, and until the gate was opened or parked by another report; the probe that follows a lease
    that ran out takes the word from those before it.
    """

    key: str
    #: The state of the gate that admitted this call: a report about one too old is late.
    generation: int
    probe: bool
    _gate: ProviderGate = field(repr=False, compare=False)

    def ok(self) -> None:
        """Report any answer that is not a limit: the provider is there."""
        self._gate._answered(self)  # noqa: SLF001  # a pass is the gate's own other half

    def limited(self, retry_after_s: float | None = None) -> None:
        """Report a limit, with the wait the provider asked for, if any."""
        self._gate._limited(self, retry_after_s)  # noqa: SLF001  # as above

    def release(self) -> None:
        """Give the right back without a verdict: the call was not made, or says nothing."""
        self._gate._released(self)  # noqa: SLF001  # as above

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass(slots=True)
class _State:
    generation: int = 0
    #: The reports of passes older than this are late.
    counts_from: int = 0
    parked: bool = False
    until: float = 0.0
    failed_probes: int = 0
    probing: bool = False
    lease_until: float = 0.0

    def next_turn(self) -> float:
        return max(self.until, self.lease_until) if self.probing else self.until

    def renew(self) -> None:
        """Go on to a generation of which no pass of before can report."""
        self.generation += 1
        self.counts_from = self.generation


class ProviderGate:
    """Where every caller of a provider waits after a rate limit; safe for any number of threads.

    An open gate admits everybody. Once a call is limited the gate is parked until the time that the
    provider named; then exactly one caller is admitted as the probe, and the others go on waiting.
    Its success opens the gate for all, its failure parks the gate again; a probe that does not
    report within its lease is replaced. A late report of an older pass changes nothing, and no
    report takes the verdict from the probe under way: the limit of a probe that was given back
    only makes the pause longer, should that probe fail too.
    """

    def __init__(
        self, terms: GateTerms | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._terms = terms or GateTerms()
        self._clock = clock
        self._lock = threading.Lock()  # guards: _states, _changes
        self._changed = threading.Condition(self._lock)  # tells: _changes
        # Only gates that were parked once are here; the others admit without any state.
        self._states: dict[str, _State] = {}
        self._changes = 0

    def enter(self, key: str, *, timeout_s: float, stop: StopSignal | None = None) -> Pass:
        """Wait until a call may be made; refuse with CA3108 when the time does not suffice.

        A gate that stays closed beyond `timeout_s` refuses at once: nobody waits in vain.
        A stop signal ends the wait with `Stopped`.
        """
        if not is_seconds(timeout_s):
            raise RequestError(f"`timeout_s` must be a number of seconds from 0, got {timeout_s!r}")
        admitted = self._admit_if_open(key)
        if admitted is not None:
            return admitted
        forget = stop.when_stopped(lambda _: self.wake()) if stop is not None else None
        try:
            return self._wait(key, self._clock() + timeout_s, stop)
        finally:
            if forget is not None:
                forget()

    def park(self, key: str, retry_after_s: float | None = None) -> None:
        """Close a gate without a pass; a gate already parked is only parked for longer."""
        now = self._clock()
        with self._lock:
            state = self._states.setdefault(key, _State())
            until = now + self._pause_s(state, retry_after_s)
            if state.parked:
                state.until = max(state.until, until)
            else:
                self._park_locked(state, until)
            self._tell_locked()

    def parked_for_s(self, key: str) -> float:
        """Return how long a gate stays closed; 0 when it is open or a probe may go."""
        now = self._clock()
        with self._lock:
            state = self._states.get(key)
            return max(0.0, state.until - now) if state is not None and state.parked else 0.0

    def wake(self) -> None:
        """Make everybody who waits look again at the clock and at their stop signal."""
        with self._lock:
            self._tell_locked()

    def _admit_if_open(self, key: str) -> Pass | None:
        with self._lock:
            state = self._states.get(key)
            if state is not None and state.parked:
                return None
            return Pass(key, 0 if state is None else state.generation, probe=False, _gate=self)

    def _wait(self, key: str, deadline: float, stop: StopSignal | None) -> Pass:
        while True:
            with self._lock:
                seen = self._changes
            # Read after `seen`: a stop or a tick from here on shows as a change below.
            if stop is not None:
                stop.raise_if_stopped()
            now = self._clock()
            with self._lock:
                if self._changes != seen:
                    continue
                state = self._states[key]
                admitted = self._admit_locked(key, state, now)
                if admitted is not None:
                    return admitted
                next_turn = state.next_turn()
                if now < deadline and state.until <= deadline:
                    self._changed.wait(min(next_turn - now, deadline - now, _SLEEP_S_MAX))
                    continue
            raise _refusal(key, next_turn - now)

    def _admit_locked(self, key: str, state: _State, now: float) -> Pass | None:
        if not state.parked:
            return Pass(key, state.generation, probe=False, _gate=self)
        if now < state.until or (state.probing and now < state.lease_until):
            return None
        if state.probing:
            state.renew()
        else:
            # A probe that was given back may still report: see `Pass`.
            state.generation += 1
        state.probing = True
        state.lease_until = now + self._terms.lease_s
        return Pass(key, state.generation, probe=True, _gate=self)

    def _answered(self, admitted: Pass) -> None:
        with self._lock:
            state = self._states.get(admitted.key)
            # Only a probe has the generation of a parked gate, and only the last one.
            if state is not None and state.parked and state.generation == admitted.generation:
                state.renew()
                state.parked = state.probing = False
                state.failed_probes = 0
                self._tell_locked()

    def _limited(self, admitted: Pass, retry_after_s: float | None) -> None:
        now = self._clock()
        with self._lock:
            state = self._states.setdefault(admitted.key, _State())
            if admitted.generation < state.counts_from:
                return
            state.failed_probes += state.parked
            until = now + self._pause_s(state, retry_after_s)
            if state.parked:
                until = max(until, state.until)
            if state.probing and state.generation != admitted.generation:
                state.until = until
                state.counts_from = admitted.generation + 1
            else:
                self._park_locked(state, until)
            self._tell_locked()

    def _released(self, admitted: Pass) -> None:
        with self._lock:
            state = self._states.get(admitted.key)
            if state is not None and state.probing and state.generation == admitted.generation:
                state.probing = False
                self._tell_locked()

    def _pause_s(self, state: _State, retry_after_s: float | None) -> float:
        if retry_after_s is not None and is_seconds(retry_after_s):
            return retry_after_s
        return self._terms.growing_pause_s(state.failed_probes)

    @staticmethod
    def _park_locked(state: _State, until: float) -> None:
        state.renew()
        state.parked = True
        state.until = until
        state.probing = False

    def _tell_locked(self) -> None:
        self._changes += 1
        self._changed.notify_all()


def _refusal(key: str, retry_after_s: float) -> ProviderError:
    return ProviderError(
        f"Provider gate `{key}` is parked after a rate limit for up to {retry_after_s:.1f} s more",
        code="CA3108",
        facts={"provider": key, "retry_after_s": retry_after_s},
        hint="Wait longer, or go on with another model",
    )
