"""A `CostTracker` whose every acknowledged entry survives, shared by all processes on one store."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Final, Self

from cleveragents.domain.budget import Limit, known_kind, positive_s, scope_key
from cleveragents.domain.errors import RequestError, StoreError
from cleveragents.domain.money import pico_of
from cleveragents.infrastructure import ledger
from cleveragents.infrastructure.limits import limits_of, remove_limit, set_limit
from cleveragents.providers.budget_account import overrun, unconfirmed
from cleveragents.providers.cost_tracker import RESERVATION_TTL_S, CostTracker
from cleveragents.providers.reservation import Outcome, Reservation, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import tzinfo

    from cleveragents.domain.budget import Balance, Scopes
    from cleveragents.domain.event import Notice
    from cleveragents.domain.money import Amount
    from cleveragents.infrastructure.store import Store
    from cleveragents.infrastructure.transaction import Transaction

_log = logging.getLogger(__name__)

#: A process that has not been heard of for so long is taken for dead.
LEASE_S: Final = 10.0


class DurableReservation(Reservation):
    """A reservation that the store knows by its id; `state` is as this process last heard."""

    __slots__ = ("id", "keys")

    def __init__(self, tracker: CostTracker, promise: ledger.Promise) -> None:
        super().__init__(tracker, promise.pico, (), promise.expires_at)
        self.id = promise.id
        self.keys = promise.keys
        self.state = promise.state
        self.billed = promise.billed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DurableReservation) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The keys of every scope the call is charged to, day and month included."""
        return self.keys


@dataclass(frozen=True, slots=True)
class Settlement:
    """A bill that is to be put in place of a promise."""

    store: Store
    #: The write of that store, and what is to be done with its answer.
    write: Callable[[Transaction], ledger.Posted]
    done: Callable[[ledger.Posted], Outcome]


class DurableCostTracker(CostTracker):
    """Keeps the promises of `CostTracker` across processes and across kill -9.

    Every method that changes something returns after the commit that holds it is on the disk;
    callers at the same time share commits. The store decides, in one transaction at a time,
    so limits are exact for all threads of all processes on the file.
    Limits belong to the store: a limit that one process sets holds for all.

    A process renews a lease while it lives. Reservations of a process that died are charged at
    their upper bound and listed by `expire()` as unconfirmed, until somebody settles or releases
    them; so are those whose own time is over.
    """

    def __init__(  # noqa: PLR0913  # as `CostTracker`, with a store and a lease
        self,
        store: Store,
        daily_budget: Amount | None = None,
        *,
        limits: Iterable[Limit] = (),
        zone: str | tzinfo = UTC,
        reservation_ttl_s: float = RESERVATION_TTL_S,
        lease_s: float = LEASE_S,
        clock: Callable[[], float] | None = None,
        on_notice: Callable[[Notice], object] | None = None,
    ) -> None:
        super().__init__(
            zone=zone, reservation_ttl_s=reservation_ttl_s, clock=clock, on_notice=on_notice
        )
        self._store = store
        self._lease_s = positive_s("lease_s", lease_s)
        self._process = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._stopping = threading.Event()
        daily = () if daily_budget is None else (Limit("day", daily_budget),)
        for limit in (*daily, *limits):
            self.set_limit(limit)
        self._store.write(self._renew_lease)
        self.expire()
        # A daemon: it only renews a lease, which a process that ends need not keep.
        self._heart = threading.Thread(target=self._beat, name="ca-ledger-heart", daemon=True)
        self._heart.start()

    # -- spending --------------------------------------------------------------------------

    def record_usage(
        self, cost: Amount, scopes: Scopes | None = None, *, key: str | None = None
    ) -> None:
        """Add a cost to today's total and to its scopes; durable when it returns."""
        pico, now = pico_of(cost), self._clock()
        self._tell(self._store.write(ledger.record(self._keys(scopes, now), pico, key, now)))

    def reserve(
        self, upper_bound: Amount, scopes: Scopes | None = None, *, ttl_s: float | None = None
    ) -> Reservation:
        """Promise money to a call on all its scopes at once, or raise `BudgetExceeded`."""
        pico, now = pico_of(upper_bound), self._clock()
        expires_at = now + (self._ttl_s if ttl_s is None else positive_s("ttl_s", ttl_s))
        promise = ledger.Promise(
            f"r-{secrets.token_hex(8)}", State.OPEN, pico, 0, self._keys(scopes, now), expires_at
        )
        refused = self._store.write(ledger.reserve(promise, self._process, now))
        if refused is not None:
            raise refused
        return DurableReservation(self, promise)

    def settle(
        self, reservation: Reservation, actual: Amount, *, key: str | None = None
    ) -> Outcome:
        """Charge what a call really cost and give back the rest of its promise."""
        settlement = self.settlement(reservation, actual, key=key)
        return settlement.done(self._store.write(settlement.write))

    def settlement(
        self, reservation: Reservation, actual: Amount, *, key: str | None = None
    ) -> Settlement:
        """Return what `settle` does in two halves, for whoever writes more in the same step."""
        ours = _durable(reservation)
        write = ledger.settle(ours.id, pico_of(actual), key, self._clock())

        def done(posted: ledger.Posted) -> Outcome:
            self._adopt(ours, posted)
            if posted.over:
                self._tell([overrun(ours)])
            return posted.outcome

        return Settlement(self._store, write, done)

    def release(self, reservation: Reservation) -> Outcome:
        """Give a promise back: the call was not made, or it was not billed."""
        ours = _durable(reservation)
        posted = self._store.write(ledger.release(ours.id, self._clock()))
        self._adopt(ours, posted)
        return posted.outcome

    def abandon(self, reservation: Reservation) -> None:
        """Charge an open reservation at its upper bound, as unconfirmed."""
        ours = _durable(reservation)
        posted = self._store.write(ledger.abandon(ours.id, self._clock()))
        self._adopt(ours, posted)
        if posted.outcome is Outcome.LATE:
            self._tell([unconfirmed(ours)])

    def renew(self, reservation: Reservation, ttl_s: float | None = None) -> bool:
        """Give an open reservation more time from now on; false when it has ended."""
        more_s = self._ttl_s if ttl_s is None else positive_s("ttl_s", ttl_s)
        return self._store.write(ledger.renew(_durable(reservation).id, self._clock() + more_s))

    def find(self, reservation: str) -> DurableReservation | None:
        """Return a reservation of any process by its id, as it stands; None when there is none."""
        with self._store.read() as connection:
            promise = ledger.find_promise(connection, reservation)
        return None if promise is None else DurableReservation(self, promise)

    def expire(self) -> tuple[Reservation, ...]:
        """Charge what nothing was heard of, of any process; return all that is unconfirmed."""
        for posted in self._store.write(ledger.expire(self._clock(), self._process)):
            late = DurableReservation(self, posted.promise)
            self._tell([unconfirmed(late), *posted.notices])
        with self._store.read() as connection:
            rows = connection.execute(
                "SELECT id, state, pico, billed, keys, expires_at, bill FROM reservations "
                "WHERE state = 'unconfirmed' ORDER BY expires_at, id"
            ).fetchall()
        return tuple(DurableReservation(self, ledger.promise_from(row)) for row in rows)

    # -- limits ----------------------------------------------------------------------------

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits in force, for all processes."""
        with self._store.read() as connection:
            return limits_of(connection)

    def set_limit(self, limit: Limit) -> None:
        """Put a limit in force at once, for all processes on the store."""
        self._store.write(set_limit(limit, self._clock()))

    def remove_limit(self, limit: Limit) -> None:
        """Lift the limit of the same kind, name and hardness; absent is fine."""
        self._store.write(remove_limit(limit, self._clock()))

    # -- reading ---------------------------------------------------------------------------

    def balance(self, kind: str, name: str) -> Balance:
        """Return what one scope has spent and promised, by all processes."""
        with self._store.read() as connection:
            keys = [scope_key(known_kind(kind), name)]
            return ledger.balances(connection, keys, limits_of(connection))[0]

    def report(self) -> tuple[Balance, ...]:
        """Return the balance of every scope in one consistent snapshot, by kind and name."""
        with self._store.read() as connection:
            limits = limits_of(connection)
            rows = connection.execute("SELECT key, spent, held FROM accounts").fetchall()
        found = [ledger.balance_from(key, spent, held, limits) for key, spent, held in rows]
        return tuple(sorted(found, key=lambda one: (one.kind, one.name)))

    # -- living and ending -----------------------------------------------------------------

    def close(self) -> None:
        """Stop the heartbeat and give up the lease; what is still open becomes unconfirmed."""
        self._stopping.set()
        self._heart.join()
        self._store.write(
            lambda tx: tx.execute("DELETE FROM processes WHERE id = ?", (self._process,))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _beat(self) -> None:
        while not self._stopping.wait(self._lease_s / 4):
            try:
                self._store.write(self._renew_lease)
                self.expire()
            except StoreError:
                # The store tells every caller of its trouble; the next beat tries again.
                _log.exception("The lease of `%s` was not renewed", self._process)

    def _renew_lease(self, tx: Transaction) -> None:
        alive_until = self._clock() + self._lease_s
        tx.execute("INSERT OR REPLACE INTO processes VALUES (?, ?)", (self._process, alive_until))

    def _keys(self, scopes: Scopes | None, now: float) -> tuple[str, ...]:
        day = self._today
        if not day.starts_at <= now < day.ends_at:
            day = self._day_at(now)
        return day.keys if scopes is None else day.keys + scopes.keys

    def _adopt(self, reservation: DurableReservation, posted: ledger.Posted) -> None:
        reservation.state = posted.promise.state
        reservation.billed = posted.charged
        self._tell(posted.notices)


def _durable(reservation: Reservation) -> DurableReservation:
    if not isinstance(reservation, DurableReservation):
        raise RequestError("The reservation was made by another tracker, which must settle it")
    return reservation
