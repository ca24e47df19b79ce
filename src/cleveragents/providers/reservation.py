"""Money promised to one call, from the promise to the bill."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from cleveragents.domain.money import Money

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from cleveragents.domain.money import Amount
    from cleveragents.providers.budget_account import Account
    from cleveragents.providers.cost_tracker import CostTracker


class State(enum.Enum):
    """Where a reservation stands; it ends `SETTLED` or `RELEASED`."""

    OPEN = "open"
    SETTLED = "settled"
    RELEASED = "released"
    UNCONFIRMED = "unconfirmed"  # no bill came: charged at its upper bound until one does


class Outcome(enum.Enum):
    """What a settle or release did."""

    CHARGED = "charged"
    OVERRUN = "overrun"  # charged, above what was reserved
    LATE = "late"  # charged after expiry or release, in place of what stood there
    REPEATED = "repeated"  # this bill was counted before; only what it exceeds the first is added
    RELEASED = "released"
    KEPT = "kept"  # settled or released before: a release changes nothing


class Bill:
    """A named bill and where it went; the same name again can only raise it."""

    __slots__ = ("accounts", "billed")

    def __init__(self, accounts: tuple[Account, ...], billed: int) -> None:
        self.accounts = accounts
        self.billed = billed


class Reservation(Bill):
    """Money promised to one call on all its scopes, until `settle` or `release`.

    As a context manager: settle inside the block with what was billed.
    A block that ends without it releases the promise;
    one that ends by an exception may have been billed, so it is charged at its upper bound
    and listed as unconfirmed until somebody settles or releases it.

    Every method may be called from any thread, any number of times; the tracker that made
    the reservation changes it under its own lock.
    """

    __slots__ = ("bill", "expires_at", "pico", "state", "tracker")

    def __init__(
        self, tracker: CostTracker, pico: int, accounts: tuple[Account, ...], expires_at: float
    ) -> None:
        self.tracker = tracker
        self.pico = pico
        self.accounts = accounts
        self.expires_at = expires_at
        self.billed = 0
        self.bill: Bill | None = None  # the bill that counts, where it is not this one's own
        self.state = State.OPEN

    @property
    def upper_bound(self) -> Money:
        """The most that the call was said to cost."""
        return Money(self.pico)

    @property
    def charged(self) -> Money:
        """What stands on the accounts for this call by now."""
        return Money((self.bill or self).billed)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The keys of every scope the call is charged to, day and month included."""
        return tuple(account.key for account in self.accounts)

    def settle(self, actual: Amount, *, key: str | None = None) -> Outcome:
        """Charge what the call really cost, and give back the rest of the promise."""
        return self.tracker.settle(self, actual, key=key)

    def release(self) -> Outcome:
        """Give the promise back: the call was not made, or not billed."""
        return self.tracker.release(self)

    def abandon(self) -> None:
        """Say that no bill will come although there may be one: charge the upper bound."""
        self.tracker.abandon(self)

    def renew(self, ttl_s: float | None = None) -> bool:
        """Ask for more time; false when the reservation has ended or expired."""
        return self.tracker.renew(self, ttl_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.release()
        else:
            self.abandon()

    def __repr__(self) -> str:
        return f"<Reservation of {self.upper_bound}, {self.state.value}>"
