"""A durable tracker for very many small calls: each process spends from slices that it drew."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.budget import positive_s
from cleveragents.domain.errors import BudgetExceeded, RequestError, StoreError
from cleveragents.domain.money import Money, pico_of
from cleveragents.infrastructure import slices
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker, DurableReservation
from cleveragents.infrastructure.ledger import record
from cleveragents.infrastructure.slice_reservation import Slice, SliceReservation, charge_slice
from cleveragents.providers.budget_account import overrun
from cleveragents.providers.reservation import Outcome, Reservation, State
from cleveragents.providers.settlement import settlement

if TYPE_CHECKING:
    from cleveragents.domain.budget import Balance, Limit, Scopes
    from cleveragents.domain.money import Amount
    from cleveragents.infrastructure.store import Store

_log = logging.getLogger(__name__)

#: How often bills are written and idle money is given back.
FLUSH_S: Final = 0.05
#: How long a caller waits for idle money of other processes before it is refused.
PATIENCE_S: Final = 2.0
#: How long to look away while another thread moves a reservation or writes bills.
_MOVING_S: Final = 0.001
#: How many calls of the size asked for a slice is meant to serve, far from a limit.
_CALLS: Final = 10_000
#: And how much it takes at most, in pico-dollars, whatever a call may cost.
_SLICE_PICO_MAX: Final = 10**15


class EscrowCostTracker(DurableCostTracker):
    """Answers from memory, exactly for all processes, and writes what was spent a little later.

    Limits hold as in `DurableCostTracker`: a slice is reserved in the store before any call is
    promised from it. `reserve` and `settle` are acknowledged from memory, their bills are written
    together every `flush_s`; `flush()` waits for that. A process that dies leaves its slices, and
    what is left of them is charged like every reservation of which nothing is heard, so spending
    never looks lower than it was. Settling by key, abandoning, and reserving with a time to live
    are durable at once.

    Near a limit slices shrink to what is asked, idle ones are given back, and a caller that
    would be refused waits a moment for those of other processes: the last cent is spendable.
    """

    def __init__(
        self,
        store: Store,
        daily_budget: Amount | None = None,
        *,
        flush_s: float = FLUSH_S,
        patience_s: float = PATIENCE_S,
        **options: Any,
    ) -> None:
        self._flush_s = positive_s("flush_s", flush_s)
        self._patience_s = positive_s("patience_s", patience_s)
        # guards: _slices, all in them and their reservations, _returning
        self._slices_lock = threading.Lock()
        self._slices: dict[tuple[str, ...], Slice] = {}
        self._returning = 0  # parts of slices on their way back to the store
        super().__init__(store, daily_budget, **options)
        # A daemon: what it has not written is still held in the store, and charged if it must be.
        self._flusher = threading.Thread(target=self._flush_often, name="ca-escrow", daemon=True)
        self._flusher.start()

    # -- spending --------------------------------------------------------------------------

    def reserve(
        self, upper_bound: Amount, scopes: Scopes | None = None, *, ttl_s: float | None = None
    ) -> Reservation:
        """Promise money from a slice of these scopes; draw more for it first if need be."""
        if ttl_s is not None:
            return super().reserve(upper_bound, scopes, ttl_s=ttl_s)
        pico = pico_of(upper_bound)
        keys = self._keys(scopes, self._clock())
        while True:
            with self._slices_lock:
                source = self._slices.get(keys)
                if source is not None and source.free >= pico:
                    source.free -= pico
                    source.held += pico
                    source.used = True
                    return SliceReservation(self, pico, source)
            self._draw_more(keys, pico)

    def settle(
        self, reservation: Reservation, actual: Amount, *, key: str | None = None
    ) -> Outcome:
        """Charge what a call really cost; with a key it is durable at once, and counted once."""
        if not isinstance(reservation, SliceReservation):
            return super().settle(reservation, actual, key=key)
        if reservation.tracker is not self:
            raise RequestError("The reservation was made by another tracker, which must settle it")
        return reservation.settle(actual, key=key)

    def settle_slowly(self, reservation: SliceReservation, pico: int, key: str | None) -> Outcome:
        """Settle by a key, above the promise, or after the reservation has ended in some way."""
        actual = Money(pico)
        twin = self._twin_of(reservation, make=key is not None)
        if twin is not None:
            outcome = super().settle(twin, actual, key=key)
            reservation.state, reservation.billed = twin.state, twin.billed
            return outcome
        with self._slices_lock:
            state = reservation.state
            known = reservation.billed if state is State.SETTLED else None
            effect = settlement(state, reservation.pico, reservation.billed, pico, known)
            reservation.state = State.SETTLED
            reservation.billed = effect.billed + effect.raised
            beside = charge_slice(reservation, state, effect.spent + effect.raised)
        if beside:
            self._record(reservation.source.part.keys, beside)
        if effect.over:
            self._tell([overrun(reservation)])
        return effect.outcome

    def release(self, reservation: Reservation) -> Outcome:
        """Give a promise back to its slice."""
        if not isinstance(reservation, SliceReservation):
            return super().release(reservation)
        twin = self._twin_of(reservation, make=False)
        if twin is not None:
            outcome = super().release(twin)
            reservation.state, reservation.billed = twin.state, twin.billed
            return outcome
        with self._slices_lock:
            if reservation.state is not State.OPEN:
                return Outcome.KEPT
            reservation.state = State.RELEASED
            reservation.source.held -= reservation.pico
            reservation.source.free += reservation.pico
        return Outcome.RELEASED

    def abandon(self, reservation: Reservation) -> None:
        """Charge an open reservation at its upper bound, as an unconfirmed one of its own."""
        if not isinstance(reservation, SliceReservation):
            super().abandon(reservation)
            return
        twin = self._twin_of(reservation, make=True)
        if twin is not None:
            super().abandon(twin)
            reservation.state, reservation.billed = twin.state, twin.billed

    def renew(self, reservation: Reservation, ttl_s: float | None = None) -> bool:
        """Give a reservation more time; those of a slice live as long as their process."""
        if ttl_s is not None:
            positive_s("ttl_s", ttl_s)
        if not isinstance(reservation, SliceReservation):
            return super().renew(reservation, ttl_s)
        return reservation.state is State.OPEN

    # -- reading ---------------------------------------------------------------------------

    def balance(self, kind: str, name: str) -> Balance:
        """Return what one scope has spent and promised; other processes' slices are promised."""
        self._settle_up()
        return super().balance(kind, name)

    def report(self) -> tuple[Balance, ...]:
        """Return the balance of every scope; other processes' slices count as promised."""
        self._settle_up()
        return super().report()

    # -- limits ----------------------------------------------------------------------------

    def set_limit(self, limit: Limit) -> None:
        """Put a limit in force, at once here, and for others once they gave idle slices back."""
        super().set_limit(limit)
        if self._others_hold():
            self._want_idle_money()
        self._settle_up()

    # -- slices ----------------------------------------------------------------------------

    def flush(self) -> None:
        """Write every bill that was told before this call."""
        with self._slices_lock:
            owing = [one for one in self._slices.values() if one.owed or one.writing]
        for one in owing:
            self._write_bills(one)

    def close(self) -> None:
        """Write every bill, give all slices back, and stop."""
        self._stopping.set()
        self._flusher.join()
        self._settle_up()
        self._settle_up()  # what was still in use at the first is idle now, and ends
        super().close()

    def _write_bills(self, one: Slice) -> None:
        owed, calls = self._bills_of(one)
        if not owed:
            return
        written = False
        try:
            notices = self._store.write(slices.draw(one.part, owed, calls, self._clock()))
            written = True
        finally:
            with self._slices_lock:
                one.writing = False
                if not written:
                    one.owed += owed
                    one.calls += calls
        self._tell(notices)

    def _bills_of(self, one: Slice) -> tuple[int, int]:
        """Take what a slice owes, to be written; wait while another thread writes."""
        while True:
            with self._slices_lock:
                if not one.writing:
                    owed, calls = one.owed, one.calls
                    one.owed = one.calls = 0
                    one.writing = owed > 0
                    return owed, calls
            # They are neither owed nor in the store yet, which takes one commit.
            self._stopping.wait(_MOVING_S)

    def _settle_up(self) -> None:
        self.flush()
        self._give_back(idle_only=False)

    def _draw_more(self, keys: tuple[str, ...], pico: int) -> None:
        """Grow the slice of these scopes until it can promise this much, or raise the refusal.

        A refusal stands only if nothing idle was on its way back before it was asked for.
        """
        deadline = time.monotonic() + self._patience_s
        while True:
            idle_elsewhere = self._others_hold()
            with self._slices_lock:
                source = self._slices.setdefault(keys, Slice(keys))
                least = pico - source.free
                on_its_way = self._returning > 0
                if least <= 0:
                    return
                source.growing += 1
            wish = 0 if self._is_wanted() else min(_CALLS * pico, _SLICE_PICO_MAX)
            part = replace(source.part, pico=max(least, wish))
            added: int | BudgetExceeded | None = None
            try:
                write = slices.grow(part, least, self._process, self._clock())
                added = self._store.write(write)
            finally:
                self._grown(keys, source, added)
            if not isinstance(added, BudgetExceeded):
                return
            if self._give_back(idle_only=False):
                continue
            if time.monotonic() >= deadline or not (idle_elsewhere or on_its_way):
                raise added
            self._want_idle_money()
            self._stopping.wait(self._flush_s)

    def _grown(
        self, keys: tuple[str, ...], source: Slice, added: int | BudgetExceeded | None
    ) -> None:
        with self._slices_lock:
            source.growing -= 1
            if added is None or isinstance(added, BudgetExceeded):
                return
            source.free += added
            if added == 0 and self._slices.get(keys) is source:
                # The store has taken us for dead and charged it; its calls are part of that.
                del self._slices[keys]

    def _twin_of(self, reservation: SliceReservation, *, make: bool) -> DurableReservation | None:
        """Return the call's own entry in the store; give an open call one if it is to be made."""
        while True:
            with self._slices_lock:
                if not reservation.moving:
                    if not make or reservation.twin or reservation.state is not State.OPEN:
                        return reservation.twin
                    reservation.moving = True
                    reservation.source.held -= reservation.pico
                    break
            self._stopping.wait(_MOVING_S)  # another thread moves it, which takes one commit
        now = self._clock()
        own = replace(
            reservation.source.part,
            id=f"r-{secrets.token_hex(8)}",
            pico=reservation.pico,
            expires_at=now + self._ttl_s,
        )
        made = False
        try:
            write = slices.split(reservation.source.part, own, self._process, now)
            made = self._store.write(write)
        finally:
            with self._slices_lock:
                reservation.moving = False
                if made:
                    reservation.twin = DurableReservation(self, own)
                else:
                    reservation.source.held += reservation.pico
        return reservation.twin

    def _give_back(self, *, idle_only: bool) -> bool:
        """Return free money to the store; say whether there was any."""
        with self._slices_lock:
            returning, over = [], []
            for keys, one in list(self._slices.items()):
                if one.free and not (idle_only and one.used):
                    returning.append((one.part, one.free))
                    one.free = 0
                if one.is_over:
                    del self._slices[keys]
                    over.append(one.part)
                one.used = False
            self._returning += len(returning)
        at = self._clock()
        try:
            tickets = [
                self._store.submit(slices.shrink(part, pico, at)) for part, pico in returning
            ]
            tickets += [self._store.submit(slices.end(part)) for part in over]
            for ticket in tickets:
                ticket.result()
        finally:
            with self._slices_lock:
                self._returning -= len(returning)
        return bool(returning)

    def _flush_often(self) -> None:
        while not self._stopping.wait(self._flush_s):
            try:
                self.flush()
                self._give_back(idle_only=not self._is_wanted())
            except StoreError:
                _log.exception("Bills of `%s` were not written yet", self._process)

    def _want_idle_money(self) -> None:
        self._store.write(slices.want(self._clock() + self._patience_s))

    def _is_wanted(self) -> bool:
        with self._store.read() as connection:
            until: float = connection.execute("SELECT until FROM wanted").fetchone()[0]
        return self._clock() < until

    def _others_hold(self) -> bool:
        with self._store.read() as connection:
            row = connection.execute(
                "SELECT 1 FROM reservations WHERE state = 'open' AND pico > 0 "
                "AND id LIKE 's-%' AND process <> ? LIMIT 1",
                (self._process,),
            ).fetchone()
        return row is not None

    def _record(self, keys: tuple[str, ...], pico: int) -> None:
        self._tell(self._store.write(record(keys, pico, None, self._clock())))
