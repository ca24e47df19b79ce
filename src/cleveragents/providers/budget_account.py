"""Accounts and the rules on them: pure, and without a lock.

`CostTracker` owns the accounts and calls these rules only while it holds its lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.domain.budget import Balance, CalendarDay, Limit, scope_key
from cleveragents.domain.errors import BudgetExceeded
from cleveragents.domain.event import Notice
from cleveragents.domain.money import Money

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cleveragents.providers.reservation import Reservation

#: Above every sum that can be reached: comparing with it is cheaper than asking for None.
UNLIMITED: Final = 10**30


class Account:
    """What one scope has spent, and what is held for calls that it was promised to."""

    __slots__ = ("_reported", "_warnings", "held", "key", "limit", "spent")

    def __init__(self, key: str, limits: Iterable[Limit]) -> None:
        self.key = key
        self.spent = 0
        self.held = 0
        self.limit = UNLIMITED
        self._warnings: list[tuple[int, float, Limit]] = []
        self._reported: set[tuple[Limit, float]] = set()
        self.put_under(limits)

    def put_under(self, limits: Iterable[Limit]) -> None:
        """Obey these limits from now on; thresholds already reported stay reported."""
        mine = [limit for limit in limits if limit.covers(self.key)]
        self.limit = min((limit.amount.pico for limit in mine if limit.hard), default=UNLIMITED)
        self._warnings = sorted(
            (
                (pico, share, limit)
                for limit in mine
                for pico, share in limit.thresholds()
                if (limit, share) not in self._reported
            ),
            key=lambda warning: warning[0],
        )

    def pass_thresholds(self) -> list[Notice]:
        """Return a notice for each threshold that spending has reached, each one once."""
        notices = []
        while self._warnings and self.spent >= self._warnings[0][0]:
            _, share, limit = self._warnings.pop(0)
            self._reported.add((limit, share))
            notices.append(threshold_reached(self.key, Money(self.spent), share, limit))
        return notices

    def balance(self) -> Balance:
        """Return the account as a value."""
        kind, _, name = self.key.partition(":")
        limit = None if self.limit == UNLIMITED else Money(self.limit)
        return Balance(kind, name, Money(self.spent), Money(self.held), limit)


class DayCosts:
    """One calendar day: its account, its month's, and where each set of scopes leads on it."""

    __slots__ = ("account", "both", "ends_at", "keys", "month", "routes", "starts_at")

    def __init__(self, calendar: CalendarDay, month: Account, limits: Iterable[Limit]) -> None:
        self.account = Account(scope_key("day", calendar.day), limits)
        self.month = month
        self.both: tuple[Account, ...] = (self.account, month)
        self.keys = (self.account.key, month.key)
        self.starts_at = calendar.starts_at
        self.ends_at = calendar.ends_at
        self.routes: dict[tuple[str, ...], tuple[Account, ...]] = {}


def charge(accounts: Iterable[Account], pico: int) -> None:
    """Add to what each account has spent; a negative amount takes back."""
    for account in accounts:
        account.spent += pico


def pass_thresholds(accounts: Iterable[Account]) -> list[Notice]:
    """Return a notice for each threshold that spending has reached by now, each one once."""
    return [notice for account in accounts for notice in account.pass_thresholds()]


def take_back(accounts: Iterable[Account], short: Account, pico: int) -> Balance:
    """Undo a promise that one account could not hold; return that account as it was before."""
    for account in accounts:
        account.held -= pico
        if account is short:
            break
    return short.balance()


def refusal(balance: Balance, asked: Money) -> BudgetExceeded:
    """Return the error for a reservation that could have exceeded this balance's limit."""
    scope = f"{balance.kind} `{balance.name}`"
    room = max(balance.remaining or Money(0), Money(0))
    return BudgetExceeded(
        f"The next call could exceed the budget of {scope}",
        facts={
            "scope": scope_key(balance.kind, balance.name),
            "limit": balance.limit,
            "spent": balance.spent,
            "promised": balance.promised,
            "asked": asked,
        },
        hint=f"Raise the limit of {scope}, or ask for a call that costs at most {room}",
    )


def overrun(reservation: Reservation) -> Notice:
    """Return the notice for a bill above its reservation."""
    return Notice(
        "CA2105", "A bill exceeded its reservation; it is recorded in full", _facts(reservation)
    )


def unconfirmed(reservation: Reservation) -> Notice:
    """Return the notice for a call of which nothing was heard."""
    return Notice(
        "CA2106",
        "No bill came for a reservation; it is charged at its upper bound until one does",
        _facts(reservation),
    )


def _facts(reservation: Reservation) -> dict[str, object]:
    return {
        "scopes": reservation.scopes,
        "reserved": reservation.upper_bound,
        "charged": reservation.charged,
    }


def threshold_reached(key: str, spent: Money, share: float, limit: Limit) -> Notice:
    """Return the notice for spending that reached a share of a limit."""
    kind, _, name = key.partition(":")
    hardness = "hard" if limit.hard else "soft"
    return Notice(
        "CA2104",
        f"Spending of {kind} `{name}` reached {share:.0%} of its {hardness} budget",
        {
            "scope": key,
            "share": share,
            "spent": spent,
            "limit": limit.amount,
            "hard": limit.hard,
        },
    )
