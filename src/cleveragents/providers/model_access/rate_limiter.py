"""Requests and tokens per minute of each provider, shared fairly by all plans of a process."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cleveragents.domain.error_record import is_seconds
from cleveragents.domain.errors import ProviderError, RequestError
from cleveragents.providers.model_access.rate_bucket import NS_PER_S, RateLimits
from cleveragents.providers.model_access.rate_line import Line, Waiter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["RateLimiter", "RateLimits", "Ticket"]

# Whoever sleeps longer looks again first: no platform can sleep for any number of seconds.
_SLEEP_NS_MAX: Final = 3_600 * NS_PER_S


@dataclass(slots=True, eq=False)
class Ticket:
    """The right to make one call; tell what it used, once.

    A ticket of which nothing is told has used what was estimated.
    """

    provider: str
    plan: str
    tokens: int
    number: int
    _limiter: RateLimiter = field(repr=False)
    _open: bool = True  # written by the limiter, under its lock

    def settle(self, tokens_used: int) -> None:
        """Give back what was estimated too much, or take more; only the first report counts.

        After a call so long that the bucket was full again meanwhile, nothing is left to give.
        """
        _check_tokens("tokens_used", tokens_used)
        self._limiter._settle(self, requests=0, tokens=self.tokens - tokens_used)  # noqa: SLF001  # a ticket is the limiter's other half

    def refund(self) -> None:
        """Give all of it back: nothing was sent."""
        self._limiter._settle(self, requests=1, tokens=self.tokens)  # noqa: SLF001  # as above


class RateLimiter:
    """Lets calls go as fast as a provider allows, and no faster; safe for any number of threads.

    Each provider has a bucket of requests and one of tokens. In any minute no more goes out than
    the limit and the burst; a call larger than the bucket goes when the bucket is full. While the
    bucket suffices for the first in line, nobody waits. Plans are served in turn, and the calls
    of one plan first come, first served: a plan with one call waits for one call of each other
    plan, however many those have. Whoever stops waiting costs nothing and keeps nobody back.
    One thread is woken when it may go or becomes the first in line, never a crowd.
    """

    def __init__(
        self,
        limits: Mapping[str, RateLimits] = MappingProxyType({}),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = dict(limits)  # never changed
        self._clock = clock
        self._lock = (
            threading.Lock()
        )  # guards: _lines and all in them, and whether tickets are open
        self._lines: dict[str, Line] = {}

    def acquire(
        self,
        provider: str,
        *,
        plan: str,
        tokens: int,
        timeout_s: float,
        stop: StopSignal | None = None,
    ) -> Ticket:
        """Wait until one call of so many tokens may go; refuse with CA3109 after `timeout_s`.

        A provider that is held for longer refuses at once: nobody waits in vain.
        A stop signal ends the wait with `Stopped`. A provider without limits lets everybody go.
        """
        _check_tokens("tokens", tokens)
        _check_seconds("timeout_s", timeout_s)
        if stop is not None:
            stop.raise_if_stopped()
        now_ns = self._now_ns()
        with self._lock:
            line = self._line_locked(provider, now_ns)
            if line.waiting == 0 and line.ready_ns(tokens) <= now_ns:
                return Ticket(provider, plan, tokens, line.take(tokens, now_ns), self)
        # One condition each, made of the one lock: so only who may go is woken.
        turn = threading.Condition(self._lock)  # tells: Waiter.nudged
        waiter = Waiter(plan, tokens, now_ns + round(timeout_s * NS_PER_S), turn.notify)
        forget = stop.when_stopped(lambda _: self._nudge(waiter)) if stop is not None else None
        try:
            with self._lock:
                line.join(waiter)
            return self._wait(provider, waiter, turn, stop)
        finally:
            if forget is not None:
                forget()
            with self._lock:
                line.leave(waiter)

    def hold(self, provider: str, until_s: float) -> None:
        """Let no call to a provider go before a moment of the clock, as its `retry-after` asks.

        The clock is `time.monotonic` unless another was given. A hold is never made shorter.
        """
        _check_seconds("until_s", until_s)
        now_ns = self._now_ns()
        with self._lock:
            self._line_locked(provider, now_ns).hold(round(until_s * NS_PER_S))

    def hold_for(self, provider: str, seconds: float) -> None:
        """Let no call to a provider go for so long from now, as its `retry-after` asks."""
        _check_seconds("seconds", seconds)
        self.hold(provider, self._clock() + seconds)

    def waiting(self, provider: str) -> int:
        """Return how many calls wait for a provider."""
        with self._lock:
            line = self._lines.get(provider)
            return 0 if line is None else line.waiting

    def wake(self) -> None:
        """Make everybody who waits look again at the clock and at their stop signal."""
        with self._lock:
            for line in self._lines.values():
                line.nudge_all()

    def _wait(
        self, provider: str, waiter: Waiter, turn: threading.Condition, stop: StopSignal | None
    ) -> Ticket:
        while True:
            with self._lock:
                waiter.nudged = False
            # Read after that: a stop or a tick from here on shows as a nudge below.
            if stop is not None:
                stop.raise_if_stopped()
            now_ns = self._now_ns()
            with self._lock:
                if waiter.nudged:
                    continue
                line = self._lines[provider]
                first = line.head() is waiter
                ready_ns = line.ready_ns(waiter.tokens)
                if first and ready_ns <= now_ns:
                    number = line.go(waiter, now_ns)
                    return Ticket(provider, waiter.plan, waiter.tokens, number, self)
                if now_ns < waiter.deadline_ns and line.held_until_ns <= waiter.deadline_ns:
                    # Whoever is not the first is woken when it becomes so.
                    until_ns = min(ready_ns, waiter.deadline_ns) if first else waiter.deadline_ns
                    turn.wait(min(until_ns - now_ns, _SLEEP_NS_MAX) / NS_PER_S)
                    continue
                waiting = line.waiting
            raise _refusal(provider, line.limits, waiting, (ready_ns - now_ns) / NS_PER_S)

    def _settle(self, ticket: Ticket, *, requests: int, tokens: int) -> None:
        now_ns = self._now_ns()
        with self._lock:
            if not ticket._open:  # noqa: SLF001  # see Ticket
                return
            ticket._open = False  # noqa: SLF001  # as above
            line = self._lines[ticket.provider]
            line.settle(ticket.number, requests=requests, tokens=tokens, now_ns=now_ns)

    def _nudge(self, waiter: Waiter) -> None:
        with self._lock:
            waiter.nudge()

    def _line_locked(self, provider: str, now_ns: int) -> Line:
        line = self._lines.get(provider)
        if line is None:
            line = self._lines[provider] = Line(self._limits.get(provider, RateLimits()), now_ns)
        return line

    def _now_ns(self) -> int:
        return round(self._clock() * NS_PER_S)


def _check_tokens(name: str, value: int) -> None:
    if type(value) is not int or value < 0:
        raise RequestError(f"`{name}` must be a whole number from 0, got {value!r}")


def _check_seconds(name: str, value: float) -> None:
    if not is_seconds(value):
        raise RequestError(f"`{name}` must be a number of seconds from 0, got {value!r}")


def _refusal(provider: str, limits: RateLimits, waiting: int, ready_in_s: float) -> ProviderError:
    retry_after_s = max(0.0, ready_in_s)
    return ProviderError(
        f"The rate of provider `{provider}` leaves no room in the time that the call may wait",
        code="CA3109",
        facts={
            "provider": provider,
            "limit": str(limits),
            "waiting": waiting,
            "retry_after_s": retry_after_s,
        },
        hint="Wait longer, run fewer actors at once, or go on with another model",
    )
