"""A token bucket that keeps retries a small share of all calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cleveragents.domain.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryTerms:
    """What retries cost: in the long run `refund / cost` of all calls may be retries, here 10 %."""

    tokens: int = 500
    cost: int = 10
    #: A caller parked behind a gate does not add to the load, so its retry costs little.
    parked_cost: int = 1
    refund: int = 1

    def __post_init__(self) -> None:
        for name in ("tokens", "cost", "parked_cost", "refund"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise SetupError(f"`{name}` of `RetryTerms` must be 1 or more, got {value!r}")
        if self.tokens < self.cost:
            raise SetupError(
                f"`tokens` must pay for one retry of {self.cost}, got {self.tokens}",
                hint="Raise `tokens` of `RetryTerms`, or lower `cost`",
            )


class RetryBudget:
    """Tokens per plan and per provider: a retry takes, a success gives back.

    Not safe on its own: its owner guards it with the lock that also guards the decision,
    so that deciding and paying are one step. A full bucket takes no memory.
    """

    def __init__(
        self, terms: RetryTerms | None = None, missing: dict[str, int] | None = None
    ) -> None:
        self.terms = terms or RetryTerms()
        # How many tokens each bucket lacks; a mapping that was handed in is changed in place.
        self._missing: dict[str, int] = {} if missing is None else missing

    def draw(self, names: Iterable[str], cost: int) -> str | None:
        """Take the cost from all of these buckets, or from none; return the one that is empty."""
        wanted = tuple(names)
        for name in wanted:
            if self.left(name) < cost:
                return name
        for name in wanted:
            self._missing[name] = self._missing.get(name, 0) + cost
        return None

    def give_back(self, names: Iterable[str]) -> None:
        """Put the refund of one success into each of these buckets."""
        for name in names:
            missing = self._missing.get(name, 0) - self.terms.refund
            if missing > 0:
                self._missing[name] = missing
            else:
                self._missing.pop(name, None)

    def left(self, name: str) -> int:
        """Return how many tokens a bucket holds."""
        return self.terms.tokens - self._missing.get(name, 0)

    def forget(self, name: str) -> None:
        """Drop a bucket whose plan is over."""
        self._missing.pop(name, None)
