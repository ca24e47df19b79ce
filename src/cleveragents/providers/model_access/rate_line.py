"""Who waits for a provider, and whose turn it is: plans in turn, in a plan first come first."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cleveragents.providers.model_access.rate_bucket import SHARES, Bucket

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.providers.model_access.rate_bucket import RateLimits

__all__ = ["Line", "Meter", "Waiter"]


@dataclass(slots=True, eq=False)
class Waiter:
    """One call that waits for its turn."""

    plan: str
    tokens: int
    deadline_ns: int
    wake: Callable[[], object]
    #: Something changed since it last looked.
    nudged: bool = False
    in_line: bool = False

    def nudge(self) -> None:
        """Make it look again."""
        self.nudged = True
        self.wake()


class Meter:
    """A bucket, and which ticket may give back how much; its owner locks.

    When rights must go because the bucket fills up, the oldest go first.
    """

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self._rights: dict[int, int] = {}

    def ready_ns(self, amount: int) -> int:
        """Return the first moment at which so much may be taken."""
        return self.bucket.ready_ns(amount * SHARES)

    def take(self, ticket: int, amount: int, now_ns: int) -> None:
        """Take an estimate for a ticket."""
        self._advance(now_ns)
        self.bucket = self.bucket.take(amount * SHARES)
        self._rights[ticket] = amount * SHARES

    def settle(self, ticket: int, unused: int, now_ns: int) -> None:
        """Give back what a ticket did not use; below 0 it used more."""
        self._advance(now_ns)
        self.bucket = self.bucket.give_back(max(0, unused) * SHARES, self._rights.pop(ticket, 0))
        if unused < 0:
            self.bucket = self.bucket.owe(-unused * SHARES)

    def _advance(self, now_ns: int) -> None:
        lent_before = self.bucket.lent
        self.bucket = self.bucket.at(now_ns)
        lapsed = lent_before - self.bucket.lent
        while lapsed:
            oldest, right = next(iter(self._rights.items()))
            gone = min(right, lapsed)
            lapsed -= gone
            if gone == right:
                del self._rights[oldest]
            else:
                self._rights[oldest] = right - gone


class Line:
    """The meters of a provider and everybody who waits for it; its owner locks.

    Only the first in line may go, so a large call is not passed by small ones for ever.
    After a call of a plan has gone, that plan stands behind all others.
    """

    def __init__(self, limits: RateLimits, now_ns: int) -> None:
        self.limits = limits
        self.held_until_ns = now_ns
        self.waiting = 0
        burst_s = limits.burst_s
        self._requests = _meter(limits.requests_per_min, burst_s, now_ns)
        self._tokens = _meter(limits.tokens_per_min, burst_s, now_ns)
        self._tickets = 0
        self._plans: deque[str] = deque()
        self._waiters: dict[str, deque[Waiter]] = {}

    def head(self) -> Waiter | None:
        """Return whose turn it is."""
        return self._waiters[self._plans[0]][0] if self.waiting else None

    def join(self, waiter: Waiter) -> None:
        """Stand behind those of the same plan; a plan that is new stands behind all others."""
        queue = self._waiters.get(waiter.plan)
        if queue is None:
            queue = self._waiters[waiter.plan] = deque()
            self._plans.append(waiter.plan)
        queue.append(waiter)
        waiter.in_line = True
        self.waiting += 1

    def leave(self, waiter: Waiter) -> None:
        """Stop waiting, without a cost; nobody who has gone or left can leave again."""
        if not waiter.in_line:
            return
        was_head = self.head() is waiter
        queue = self._waiters[waiter.plan]
        queue.remove(waiter)
        waiter.in_line = False
        self.waiting -= 1
        if len(queue) == 0:
            del self._waiters[waiter.plan]
            self._plans.remove(waiter.plan)
        if was_head:
            self.nudge_head()

    def go(self, waiter: Waiter, now_ns: int) -> int:
        """Let the first in line go: return its ticket, and put its plan behind all others."""
        plan = self._plans.popleft()
        queue = self._waiters[plan]
        queue.popleft().in_line = False
        self.waiting -= 1
        if len(queue) == 0:
            del self._waiters[plan]
        else:
            self._plans.append(plan)
        ticket = self.take(waiter.tokens, now_ns)
        self.nudge_head()
        return ticket

    def ready_ns(self, tokens: int) -> int:
        """Return the first moment at which a call may go, if nobody goes before it."""
        ready_ns = self.held_until_ns
        if self._requests is not None:
            ready_ns = max(ready_ns, self._requests.ready_ns(1))
        if self._tokens is not None:
            ready_ns = max(ready_ns, self._tokens.ready_ns(tokens))
        return ready_ns

    def take(self, tokens: int, now_ns: int) -> int:
        """Take what one call needs; return the number of its ticket."""
        self._tickets += 1
        if self._requests is not None:
            self._requests.take(self._tickets, 1, now_ns)
        if self._tokens is not None:
            self._tokens.take(self._tickets, tokens, now_ns)
        return self._tickets

    def settle(self, ticket: int, *, requests: int, tokens: int, now_ns: int) -> None:
        """Give back so many requests and tokens of a ticket, or take more."""
        if self._requests is not None:
            self._requests.settle(ticket, requests, now_ns)
        if self._tokens is not None:
            self._tokens.settle(ticket, tokens, now_ns)
        if requests > 0 or tokens > 0:
            self.nudge_head()

    def hold(self, until_ns: int) -> None:
        """Let nobody go before a moment; wake those who would wait for it in vain."""
        self.held_until_ns = max(self.held_until_ns, until_ns)
        for queue in self._waiters.values():
            for waiter in queue:
                if waiter.deadline_ns < self.held_until_ns:
                    waiter.nudge()

    def nudge_head(self) -> None:
        """Wake the one whose turn it is, and nobody else."""
        head = self.head()
        if head is not None:
            head.nudge()

    def nudge_all(self) -> None:
        """Wake everybody."""
        for queue in self._waiters.values():
            for waiter in queue:
                waiter.nudge()


def _meter(per_min: int | None, burst_s: float, now_ns: int) -> Meter | None:
    return None if per_min is None else Meter(Bucket.full(per_min, burst_s, now_ns))
