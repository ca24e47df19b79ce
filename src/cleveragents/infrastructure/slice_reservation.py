"""A slice of the budget that one process drew, and the promises that it makes from it.

Both are guarded by the lock of the `EscrowCostTracker` that made them.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from cleveragents.domain.money import pico_of
from cleveragents.infrastructure import slices
from cleveragents.infrastructure.ledger import Promise
from cleveragents.providers.reservation import Outcome, Reservation, State

if TYPE_CHECKING:
    from cleveragents.domain.money import Amount
    from cleveragents.infrastructure.durable_cost_tracker import DurableReservation
    from cleveragents.infrastructure.escrow_cost_tracker import EscrowCostTracker

# Found once: to look a member up costs more than to compare it.
_OPEN, _SETTLED, _CHARGED = State.OPEN, State.SETTLED, Outcome.CHARGED


class Slice:
    """Money that this process drew for one set of scopes."""

    __slots__ = ("calls", "free", "growing", "held", "owed", "part", "used", "writing")

    def __init__(self, keys: tuple[str, ...]) -> None:
        name = f"s-{secrets.token_hex(8)}"
        self.part = Promise(name, State.OPEN, 0, 0, keys, slices.NEVER)
        self.free = 0  # promised to nobody
        self.held = 0  # promised to calls
        self.owed = 0  # spent, and not yet written
        self.calls = 0
        self.growing = 0  # callers that draw more for it right now
        self.used = True  # since the last flush
        self.writing = False  # bills of it, right now

    @property
    def is_over(self) -> bool:
        """Say whether nobody needs it any more."""
        needs = (self.used, self.growing, self.free, self.held, self.owed, self.writing)
        return not any(needs)


class SliceReservation(Reservation):
    """Money promised to one call from a slice; `twin` is its own entry in the store, if any."""

    __slots__ = ("moving", "source", "twin")

    tracker: EscrowCostTracker

    def __init__(self, tracker: EscrowCostTracker, pico: int, source: Slice) -> None:
        # As `Reservation` does it, without its call: very many of these are made.
        self.tracker = tracker
        self.pico = pico
        self.accounts = ()
        self.expires_at = slices.NEVER
        self.billed = 0
        self.bill = None
        self.state = _OPEN
        self.source = source
        self.twin: DurableReservation | None = None
        self.moving = False  # out of its slice, into an entry of its own

    @property
    def scopes(self) -> tuple[str, ...]:
        """The keys of every scope the call is charged to, day and month included."""
        return self.source.part.keys

    def settle(self, actual: Amount, *, key: str | None = None) -> Outcome:
        """Charge what the call really cost, and give back the rest of the promise."""
        # Nearly all end here; the tracker has the rest, which would cost these a call.
        pico = pico_of(actual)
        source = self.source
        with self.tracker._slices_lock:  # noqa: SLF001  # it guards this reservation, too
            back = self.pico - pico
            here = self.state is _OPEN and not self.moving and not self.twin
            if here and key is None and back >= 0:
                self.state = _SETTLED
                self.billed = pico
                source.held -= self.pico
                source.free += back
                source.owed += pico
                source.calls += 1
                source.used = True
                return _CHARGED
        return self.tracker.settle_slowly(self, pico, key)


def charge_slice(reservation: SliceReservation, state: State, more: int) -> int:
    """Take a bill out of a slice; return what the slice has not, to be recorded beside it."""
    source = reservation.source
    if state is State.OPEN:
        source.held -= reservation.pico
        source.free += reservation.pico
    beside = max(0, more - source.free)
    source.free -= more - beside
    source.owed += more - beside
    source.calls += 1
    source.used = True
    return beside
