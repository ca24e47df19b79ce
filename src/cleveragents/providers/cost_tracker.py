"""What calls cost, and the budgets they may not exceed: one dollar means one dollar."""

from __future__ import annotations

import threading
import time
from datetime import UTC, date, tzinfo
from typing import TYPE_CHECKING, Final

from cleveragents.domain.budget import (
    Balance,
    CalendarDay,
    Limit,
    Scopes,
    known_kind,
    positive_s,
    scope_key,
    zone_of,
)
from cleveragents.domain.errors import RequestError
from cleveragents.domain.event import Notice, tell
from cleveragents.domain.money import Amount, Money, pico_of
from cleveragents.providers.budget_account import (
    Account,
    DayCosts,
    charge,
    overrun,
    pass_thresholds,
    refusal,
    take_back,
    unconfirmed,
)
from cleveragents.providers.reservation import Bill, Outcome, Reservation, State
from cleveragents.providers.settlement import settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from decimal import Decimal

#: Long enough for any single model call; expiry gives no money away, it only ends the waiting.
RESERVATION_TTL_S: Final = 3600.0

# Members of enumerations, bound once: the hot path would look them up a million times a second.
_OPEN, _SETTLED = State.OPEN, State.SETTLED
_CHARGED, _OVERRUN = Outcome.CHARGED, Outcome.OVERRUN


class CostTracker:
    """Tracks cost per day and per scope, and refuses calls that could exceed a budget.

    Thread-safe: every method may be called from any thread at any time.
    Each call is one atomic step on all its scopes: no increment is lost, and what is spent
    and promised together never passes a hard limit, in any interleaving, on free-threaded
    Python too. Only a bill above its own reservation, or one that was recorded without any,
    can pass it: bills are counted and flagged, never refused.

    `_daily_costs_lock` is taken for every read and every write of the accounts and released
    before anything else happens: no callback, clock or other lock is touched while it is held.
    """

    def __init__(  # noqa: PLR0913  # the first is for everyday use, the rest are keywords
        self,
        daily_budget: Amount | None = None,
        *,
        limits: Iterable[Limit] = (),
        zone: str | tzinfo = UTC,
        reservation_ttl_s: float = RESERVATION_TTL_S,
        clock: Callable[[], float] | None = None,
        on_notice: Callable[[Notice], object] | None = None,
    ) -> None:
        daily = () if daily_budget is None else (Limit("day", daily_budget),)
        self._clock = clock or time.time
        self._zone = zone_of(zone)
        self._ttl_s = positive_s("reservation_ttl_s", reservation_ttl_s)
        self._on_notice = on_notice

        # guards: everything below, the accounts, and the state of every reservation
        self._daily_costs_lock = threading.Lock()
        self._daily_costs: dict[str, DayCosts] = {}
        self._scope_costs: dict[str, Account] = {}
        self._limits: tuple[Limit, ...] = ()
        self._warns = False  # whether any limit has thresholds to watch
        self._open: set[Reservation] = set()
        self._unconfirmed: dict[Reservation, None] = {}
        self._bills: dict[str, Bill] = {}
        self._next_expiry = float("inf")

        self._put_limits_locked((*daily, *limits))  # nobody else can see this object yet
        # A reference to the day's costs, replaced as a whole: reading it needs no lock.
        self._today = self._day_at(self._clock())

    # -- spending --------------------------------------------------------------------------

    def record_usage(
        self, cost: Amount, scopes: Scopes | None = None, *, key: str | None = None
    ) -> None:
        """Add a cost to today's total and to its scopes; it is never refused for a limit.

        A `key` names the bill: the same key again adds nothing,
        except what a larger amount exceeds the first, so no order of repeats changes the total.
        """
        pico = cost.pico if type(cost) is Money and cost.pico >= 0 else pico_of(cost)
        now = self._clock()
        day = self._today
        if not day.starts_at <= now < day.ends_at:
            day = self._day_at(now)
        notices: list[Notice] | None = None
        with self._daily_costs_lock:
            if scopes is None and key is None:
                day.account.spent += pico
                day.month.spent += pico
                accounts = day.both
            else:
                keys = () if scopes is None else scopes.keys
                accounts = day.routes.get(keys) or self._open_route_locked(day, keys)
                if key is None:
                    charge(accounts, pico)
                else:
                    accounts = self._bill_once_locked(key, accounts, pico)
            if self._warns:
                notices = pass_thresholds(accounts)
        if notices:
            self._tell(notices)

    def reserve(
        self, upper_bound: Amount, scopes: Scopes | None = None, *, ttl_s: float | None = None
    ) -> Reservation:
        """Promise money to a call on all its scopes at once, or raise `BudgetExceeded`.

        The day is the day of the reservation, also when the bill comes after midnight.
        """
        pico = pico_of(upper_bound)
        now = self._clock()
        day = self._today
        if not day.starts_at <= now < day.ends_at:
            day = self._day_at(now)
        keys = () if scopes is None else scopes.keys
        expires_at = now + (self._ttl_s if ttl_s is None else positive_s("ttl_s", ttl_s))
        with self._daily_costs_lock:
            accounts = day.routes.get(keys) or self._open_route_locked(day, keys)
            for account in accounts:
                account.held = held = account.held + pico
                if account.spent + held > account.limit:
                    short = take_back(accounts, account, pico)
                    break
            else:
                reservation = Reservation(self, pico, accounts, expires_at)
                self._open.add(reservation)
                if expires_at < self._next_expiry:  # noqa: PLR1730  # a call of min() costs 4 %
                    self._next_expiry = expires_at
                return reservation
        raise refusal(short, Money(pico))

    def settle(
        self, reservation: Reservation, actual: Amount, *, key: str | None = None
    ) -> Outcome:
        """Charge what a call really cost and give back the rest of its promise.

        Every bill counts once: settling again adds only what a larger bill exceeds the first,
        and a bill that comes after expiry or release replaces what stood in its place.
        """
        if reservation.tracker is not self:
            raise RequestError("The reservation was made by another tracker, which must settle it")
        pico = pico_of(actual)
        notices: list[Notice] = []
        with self._daily_costs_lock:
            if reservation.state is _OPEN and key is None:
                self._open.discard(reservation)
                reservation.state = _SETTLED
                reservation.billed = pico
                promised = reservation.pico
                for account in reservation.accounts:
                    account.held -= promised
                    account.spent += pico
                over = pico > promised
                outcome = _OVERRUN if over else _CHARGED
            else:
                outcome, over = self._settle_again_locked(reservation, pico, key)
            if self._warns:
                notices = pass_thresholds((reservation.bill or reservation).accounts)
        if over:
            notices = [*notices, overrun(reservation)]
        if notices:
            self._tell(notices)
        return outcome

    def release(self, reservation: Reservation) -> Outcome:
        """Give a promise back: the call was not made, or it was not billed."""
        with self._daily_costs_lock:
            if reservation.state in {State.SETTLED, State.RELEASED}:
                return Outcome.KEPT
            self._end_locked(reservation, State.RELEASED, 0)
        return Outcome.RELEASED

    def abandon(self, reservation: Reservation) -> None:
        """Charge an open reservation at its upper bound, as unconfirmed."""
        with self._daily_costs_lock:
            if reservation.state is not State.OPEN:
                return
            notices = self._leave_unconfirmed_locked(reservation)
        self._tell(notices)

    def renew(self, reservation: Reservation, ttl_s: float | None = None) -> bool:
        """Give an open reservation more time from now on; false when it has ended."""
        more_s = self._ttl_s if ttl_s is None else positive_s("ttl_s", ttl_s)
        expires_at = self._clock() + more_s
        with self._daily_costs_lock:
            if reservation.state is not State.OPEN:
                return False
            reservation.expires_at = expires_at
            self._next_expiry = min(self._next_expiry, expires_at)
            return True

    def expire(self) -> tuple[Reservation, ...]:
        """Charge reservations whose time is over at their upper bound; return all unconfirmed.

        Nothing was heard of those calls, and they may have been billed:
        unknown is not free, so expiry gives no money away.
        Settle or release them when the truth is known.
        """
        now = self._clock()
        notices: list[Notice] = []
        with self._daily_costs_lock:
            if now >= self._next_expiry:
                for reservation in [one for one in self._open if one.expires_at <= now]:
                    notices += self._leave_unconfirmed_locked(reservation)
                self._next_expiry = min(
                    (one.expires_at for one in self._open), default=float("inf")
                )
            found = tuple(self._unconfirmed)
        self._tell(notices)
        return found

    # -- limits ----------------------------------------------------------------------------

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits in force."""
        with self._daily_costs_lock:
            return self._limits

    def set_limit(self, limit: Limit) -> None:
        """Put a limit in force at once, in place of one of the same kind, name and hardness."""
        with self._daily_costs_lock:
            self._put_limits_locked((*_others(self._limits, limit), limit))

    def remove_limit(self, limit: Limit) -> None:
        """Lift the limit of the same kind, name and hardness; absent is fine."""
        with self._daily_costs_lock:
            self._put_limits_locked(_others(self._limits, limit))

    # -- reading ---------------------------------------------------------------------------

    def get_daily_spend(self, day: date | str | None = None) -> Decimal:
        """Return what was spent on a day (today by default), exactly, in USD."""
        return self.balance("day", self._day_name(day)).spent.usd

    def check_daily_budget(self, cost: Amount = 0) -> bool:
        """Say whether today's spending, promises and this further cost stay within the limit.

        It promises nothing: between this answer and the call others may spend.
        To be sure, `reserve`.
        """
        asked = pico_of(cost)
        remaining = self.balance("day", self._day_name(None)).remaining
        return remaining is None or asked <= remaining.pico

    def balance(self, kind: str, name: str) -> Balance:
        """Return what one scope has spent and promised."""
        key = scope_key(known_kind(kind), name)
        self.expire()
        with self._daily_costs_lock:
            found = next((one for one in self._accounts_locked() if one.key == key), None)
            return (found or Account(key, self._limits)).balance()

    def report(self) -> tuple[Balance, ...]:
        """Return the balance of every scope in one consistent snapshot, by kind and name."""
        self.expire()
        with self._daily_costs_lock:
            balances = [account.balance() for account in self._accounts_locked()]
        return tuple(sorted(balances, key=lambda one: (one.kind, one.name)))

    def spend_by(self, kind: str) -> dict[str, Money]:
        """Return what was spent by day, month, plan, session, actor, model or label."""
        known_kind(kind)
        return {one.name: one.spent for one in self.report() if one.kind == kind}

    # -- what the lock must be held for ----------------------------------------------------

    def _open_route_locked(self, day: DayCosts, keys: tuple[str, ...]) -> tuple[Account, ...]:
        """Find every account that these scopes lead to on a day, opening those that are new."""
        if not isinstance(keys, tuple):
            raise RequestError("`scopes` must be `Scopes(…)`, such as `Scopes(plan='p-7f3a')`")
        others = (self._account_locked(key) for key in keys)
        accounts = day.routes[keys] = (*day.both, *others)
        return accounts

    def _account_locked(self, key: str) -> Account:
        account = self._scope_costs.get(key)
        if account is None:
            account = self._scope_costs[key] = Account(key, self._limits)
        return account

    def _accounts_locked(self) -> Iterator[Account]:
        yield from (day.account for day in self._daily_costs.values())
        yield from self._scope_costs.values()

    def _bill_once_locked(
        self, key: str, accounts: tuple[Account, ...], pico: int
    ) -> tuple[Account, ...]:
        """Charge a named bill, or what it exceeds the one known by that name; return where."""
        bill = self._bills.get(key)
        if bill is None:
            bill = self._bills[key] = Bill(accounts, 0)
        more = max(0, pico - bill.billed)
        bill.billed += more
        charge(bill.accounts, more)
        return bill.accounts

    def _settle_again_locked(
        self, reservation: Reservation, pico: int, key: str | None
    ) -> tuple[Outcome, bool]:
        """Settle by a named bill, or after the reservation has ended in some way."""
        state = reservation.state
        known = None if key is None else self._bills.get(key)
        if known is None and state is State.SETTLED:
            known = reservation.bill or reservation
        if key is not None:
            self._bills[key] = known or reservation
        effect = settlement(
            state,
            reservation.pico,
            reservation.billed,
            pico,
            None if known is None else known.billed,
        )
        if state is not State.SETTLED:
            self._end_locked(reservation, State.SETTLED, effect.billed)
            reservation.bill = known
        if known is not None:
            known.billed += effect.raised
            charge(known.accounts, effect.raised)
        return effect.outcome, effect.over

    def _leave_unconfirmed_locked(self, reservation: Reservation) -> list[Notice]:
        self._end_locked(reservation, State.UNCONFIRMED, reservation.pico)
        self._unconfirmed[reservation] = None
        return [unconfirmed(reservation), *pass_thresholds(reservation.accounts)]

    def _end_locked(self, reservation: Reservation, state: State, billed: int) -> None:
        """Move a reservation to a state, putting a bill in place of what it holds by now."""
        self._open.discard(reservation)
        self._unconfirmed.pop(reservation, None)
        promised = reservation.pico if reservation.state is State.OPEN else 0
        more = billed - reservation.billed
        reservation.state = state
        reservation.billed = billed
        for account in reservation.accounts:
            account.held -= promised
        charge(reservation.accounts, more)

    def _put_limits_locked(self, limits: tuple[Limit, ...]) -> None:
        self._limits = limits
        self._warns = any(limit.warn_at for limit in limits)
        for account in self._accounts_locked():
            account.put_under(limits)

    # -- the rest --------------------------------------------------------------------------

    def _day_at(self, now: float) -> DayCosts:
        """Turn to the day of a moment; a new window is a new key, never a reset."""
        calendar = CalendarDay.at(now, self._zone)
        with self._daily_costs_lock:
            day = self._daily_costs.get(calendar.day)
            if day is None:
                month = self._account_locked(scope_key("month", calendar.month))
                day = self._daily_costs[calendar.day] = DayCosts(calendar, month, self._limits)
            self._today = day
        return day

    def _day_name(self, day: date | str | None) -> str:
        if day is None:
            return CalendarDay.at(self._clock(), self._zone).day
        try:
            return (date.fromisoformat(day) if isinstance(day, str) else day).isoformat()
        except (ValueError, AttributeError):
            raise RequestError(
                f"A day must be a date or text such as '2026-11-15', got {day!r}"
            ) from None

    def _tell(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            tell(self._on_notice, notice)


def _others(limits: Iterable[Limit], limit: Limit) -> tuple[Limit, ...]:
    place = (limit.kind, limit.name, limit.hard)
    return tuple(one for one in limits if (one.kind, one.name, one.hard) != place)
