"""The rule of a rate limit: a bucket that fills evenly and never drifts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from cleveragents.domain.error_record import is_seconds
from cleveragents.domain.errors import SetupError

__all__ = ["NS_PER_S", "SHARES", "Bucket", "RateLimits"]

NS_PER_S: Final = 1_000_000_000
#: A whole one is this many shares, so that `per_min` shares flow in with every nanosecond: exact.
SHARES: Final = 60 * NS_PER_S


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What a provider allows in a minute; None is no limit."""

    requests_per_min: int | None = None
    tokens_per_min: int | None = None
    #: What nobody used is kept for so long: at most so much of a limit may go at one moment.
    burst_s: float = 60.0

    def __post_init__(self) -> None:
        for name in ("requests_per_min", "tokens_per_min"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise SetupError(f"`{name}` must be a whole number from 1, or None, got {value!r}")
        if not is_seconds(self.burst_s) or not 0 < self.burst_s <= 60:
            raise SetupError(f"`burst_s` must be above 0 and at most 60, got {self.burst_s!r}")

    def __str__(self) -> str:
        named = {"requests": self.requests_per_min, "tokens": self.tokens_per_min}
        limits = [f"{limit} {name}" for name, limit in named.items() if limit is not None]
        return " and ".join(limits) + " in a minute" if limits else "no limit"


@dataclass(frozen=True, slots=True)
class Bucket:
    """How much may be taken at a moment; amounts are in shares, whole numbers all the way.

    In any window of time no more is used than the capacity and what flows in meanwhile, although
    what was taken in excess is given back later: `level + lent <= capacity` always, so a bucket
    that fills up takes the right to give back away (`lent` shrinks).
    """

    per_min: int
    capacity: int
    at_ns: int
    #: Below 0 it is a debt, which is paid off by what flows in.
    level: int
    #: What open tickets may still give back.
    lent: int = 0

    @classmethod
    def full(cls, per_min: int, burst_s: float, at_ns: int) -> Bucket:
        """Make a bucket that nobody took from."""
        capacity = per_min * round(burst_s * NS_PER_S)
        return cls(per_min, capacity, at_ns, capacity)

    def at(self, now_ns: int) -> Bucket:
        """Return the bucket at a later moment; a clock that was read too early changes nothing."""
        if now_ns <= self.at_ns:
            return self
        level = min(self.capacity, self.level + (now_ns - self.at_ns) * self.per_min)
        lent = min(self.lent, self.capacity - level)
        return replace(self, at_ns=now_ns, level=level, lent=lent)

    def ready_ns(self, shares: int) -> int:
        """Return the first moment at which so much may be taken.

        More than a bucket can hold may be taken from a full one, instead of never.
        """
        missing = min(shares, self.capacity) - self.level
        return self.at_ns + max(0, -(-missing // self.per_min))

    def take(self, shares: int) -> Bucket:
        """Take an estimate, which may be given back."""
        return replace(self, level=self.level - shares, lent=self.lent + shares)

    def give_back(self, shares: int, right: int) -> Bucket:
        """End the right of a ticket: what it did not use flows back, as far as the right goes."""
        return replace(self, level=self.level + min(shares, right), lent=self.lent - right)

    def owe(self, shares: int) -> Bucket:
        """Take what was used beyond an estimate, into debt if need be."""
        return replace(self, level=self.level - shares)
