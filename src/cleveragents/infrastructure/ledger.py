"""The ledger: what happened to money, as writes of the store.

Every write is a `money.*` event with what it adds to `spent` and `held` of its accounts,
and changes the projection (`accounts`, `reservations`, `bills`) in the same transaction.
SQLite runs one transaction at a time, whoever asks, so every check here is exact
for all threads of all processes on the file; group commit lets many calls share one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.budget import Balance, Limit
from cleveragents.domain.errors import RequestError
from cleveragents.domain.money import Money
from cleveragents.infrastructure.limits import hard_limit_of, limits_in, pass_thresholds
from cleveragents.providers.budget_account import refusal
from cleveragents.providers.reservation import Outcome, State
from cleveragents.providers.settlement import settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cleveragents.domain.errors import BudgetExceeded
    from cleveragents.domain.event import Notice
    from cleveragents.infrastructure.transaction import Transaction

#: Of how many calls the accounts are remembered, as text and as names.
_KEYS_MAX: Final = 512
_ADD: Final = (
    "INSERT INTO accounts VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE "
    "SET spent = spent + excluded.spent, held = held + excluded.held"
)


@dataclass(frozen=True, slots=True)
class Promise:
    """One reservation as the ledger knows it."""

    id: str
    state: State
    pico: int
    billed: int
    keys: tuple[str, ...]
    expires_at: float
    bill: str | None = None


@dataclass(frozen=True, slots=True)
class Posted:
    """What a write did: its outcome, what stands charged, and what a user should know."""

    outcome: Outcome
    charged: int
    promise: Promise
    notices: tuple[Notice, ...] = ()
    over: bool = False


def record(
    keys: tuple[str, ...], pico: int, bill: str | None, at: float
) -> Callable[[Transaction], tuple[Notice, ...]]:
    """Charge a bill without a reservation; a named one only for what is new of it."""

    def write(tx: Transaction) -> tuple[Notice, ...]:
        charged, more = keys, pico
        known = None if bill is None else _bill(tx, bill)
        if known is not None:
            charged, more = known.keys, max(0, pico - known.billed)
            _raise_bill(tx, known, more)
        elif bill is not None:
            tx.execute("INSERT INTO bills VALUES (?, ?, ?, NULL)", (bill, pico, _written(keys)))
        post(tx, "money.recorded", charged, at, spent=more, bill=bill)
        return pass_thresholds(tx, charged, at)

    return write


def reserve(
    promise: Promise, process: str, at: float
) -> Callable[[Transaction], BudgetExceeded | None]:
    """Promise money on every account, or return the refusal before anything is written.

    A refusal is no fault: returned, not raised, it costs its neighbours in the group nothing.
    """

    def write(tx: Transaction) -> BudgetExceeded | None:
        limits = limits_in(tx)
        kinds = {limit.kind for limit in limits if limit.hard}
        capped = [key for key in promise.keys if key.partition(":")[0] in kinds]
        for balance in balances(tx, capped, limits):
            taken = balance.spent.pico + balance.promised.pico + promise.pico
            if balance.limit is not None and taken > balance.limit.pico:
                return refusal(balance, Money(promise.pico))
        insert(tx, promise, process)
        post(tx, "money.reserved", promise.keys, at, held=promise.pico, reservation=promise.id)
        return None

    return write


def settle(
    reservation: str, pico: int, bill: str | None, at: float
) -> Callable[[Transaction], Posted]:
    """Charge what a call really cost; the same bill again adds only what it exceeds the first."""

    def write(tx: Transaction) -> Posted:
        promise = promise_of(tx, reservation)
        known = _known(tx, promise, bill)
        effect = settlement(
            promise.state,
            promise.pico,
            promise.billed,
            pico,
            None if known is None else known.billed,
        )
        if known is not None and effect.raised:
            _raise_bill(tx, known, effect.raised)
            post(tx, "money.raised", known.keys, at, spent=effect.raised, bill=known.key)
        if bill is not None and _bill(tx, bill) is None:
            own = reservation if known is None else known.reservation
            tx.execute(
                "INSERT INTO bills VALUES (?, ?, ?, ?)",
                (bill, pico, _written(promise.keys), own),
            )
        elsewhere = known.key if known is not None and known.reservation != reservation else None
        ended = promise
        if promise.state is not State.SETTLED:
            ended = _end(tx, replace(promise, bill=elsewhere), State.SETTLED, effect.billed, at)
        charged = effect.billed if known is None else known.billed + effect.raised
        notices = pass_thresholds(tx, known.keys if known else promise.keys, at)
        return Posted(effect.outcome, charged, ended, notices, effect.over)

    return write


def release(reservation: str, at: float) -> Callable[[Transaction], Posted]:
    """Give a promise, or the charge for silence, back."""

    def write(tx: Transaction) -> Posted:
        promise = promise_of(tx, reservation)
        if promise.state in {State.SETTLED, State.RELEASED}:
            return Posted(Outcome.KEPT, promise.billed, promise)
        ended = _end(tx, promise, State.RELEASED, 0, at)
        return Posted(Outcome.RELEASED, 0, ended)

    return write


def abandon(reservation: str, at: float) -> Callable[[Transaction], Posted]:
    """Charge an open reservation at its upper bound, because nothing is heard of its call."""

    def write(tx: Transaction) -> Posted:
        promise = promise_of(tx, reservation)
        if promise.state is not State.OPEN:
            return Posted(Outcome.KEPT, promise.billed, promise)
        ended = _end(tx, promise, State.UNCONFIRMED, promise.pico, at)
        return Posted(Outcome.LATE, promise.pico, ended, pass_thresholds(tx, promise.keys, at))

    return write


def abandon_all(key: str, at: float) -> Callable[[Transaction], tuple[Posted, ...]]:
    """Charge every open reservation of one account: whoever made them is known to be dead."""

    def write(tx: Transaction) -> tuple[Posted, ...]:
        rows = tx.execute(
            "SELECT id FROM reservations WHERE state = 'open' "
            "AND EXISTS (SELECT 1 FROM json_each(keys) WHERE value = ?) ORDER BY expires_at, id",
            (key,),
        ).fetchall()
        return tuple(abandon(row[0], at)(tx) for row in rows)

    return write


def renew(reservation: str, expires_at: float) -> Callable[[Transaction], bool]:
    """Give an open reservation more time; false when it has ended."""
    return lambda tx: (
        tx.execute(
            "UPDATE reservations SET expires_at = ? WHERE id = ? AND state = 'open'",
            (expires_at, reservation),
        ).rowcount
        == 1
    )


def expire(at: float, own: str) -> Callable[[Transaction], tuple[Posted, ...]]:
    """Charge every open reservation whose time is over, or whose process died; ours lives."""

    def write(tx: Transaction) -> tuple[Posted, ...]:
        # A slice that was used up has nothing left to charge.
        tx.execute(
            "UPDATE reservations SET state = 'released' WHERE state = 'open' AND pico = 0 "
            "AND process NOT IN (SELECT id FROM processes)"
        )
        rows = tx.execute(
            "SELECT id FROM reservations WHERE state = 'open' AND (expires_at <= ? OR process "
            "NOT IN (SELECT id FROM processes WHERE alive_until > ? OR id = ?)) "
            "ORDER BY expires_at, id",
            (at, at, own),
        ).fetchall()
        return tuple(abandon(row[0], at)(tx) for row in rows)

    return write


def promise_of(tx: Any, reservation: str) -> Promise:
    """Return a reservation as it stands, or refuse a name that is none."""
    found = find_promise(tx, reservation)
    if found is None:
        raise RequestError(
            f"The store knows no reservation `{reservation}`: it was made by another tracker",
            hint="Run `cleveragents costs` to see those that wait for a bill",
        )
    return found


def find_promise(tx: Any, reservation: str) -> Promise | None:
    """Return a reservation as it stands, if there is one."""
    row = tx.execute(
        "SELECT id, state, pico, billed, keys, expires_at, bill FROM reservations WHERE id = ?",
        (reservation,),
    ).fetchone()
    return None if row is None else promise_from(row)


def promise_from(row: tuple[Any, ...]) -> Promise:
    """Build a reservation from its row."""
    name, state, pico, billed, keys, expires_at, bill = row
    return Promise(name, State(state), pico, billed, _read(keys), expires_at, bill)


def balances(tx: Any, keys: Iterable[str], limits: tuple[Limit, ...]) -> list[Balance]:
    """Return what each scope has spent and promised, with its hard limit, in the order asked."""
    found = []
    for key in keys:
        row = tx.execute("SELECT spent, held FROM accounts WHERE key = ?", (key,)).fetchone()
        spent, held = row or (0, 0)
        found.append(balance_from(key, spent, held, limits))
    return found


def balance_from(key: str, spent: int, held: int, limits: tuple[Limit, ...]) -> Balance:
    """Build a balance from an account's row."""
    kind, _, name = key.partition(":")
    return Balance(kind, name, Money(spent), Money(held), hard_limit_of(key, limits))


@dataclass(frozen=True, slots=True)
class _Bill:
    """A bill that counts: a named one, or a settled reservation's own, which has no name."""

    key: str | None
    billed: int
    keys: tuple[str, ...]
    reservation: str | None


def _known(tx: Transaction, promise: Promise, bill: str | None) -> _Bill | None:
    known = None if bill is None else _bill(tx, bill)
    if known is None and promise.state is State.SETTLED:
        if promise.bill is not None:
            return _bill(tx, promise.bill)
        return _Bill(None, promise.billed, promise.keys, promise.id)
    return known


def _bill(tx: Transaction, key: str) -> _Bill | None:
    row = tx.execute(
        "SELECT b.key, coalesce(r.billed, b.billed), b.keys, b.reservation FROM bills b "
        "LEFT JOIN reservations r ON r.id = b.reservation WHERE b.key = ?",
        (key,),
    ).fetchone()
    return None if row is None else _Bill(row[0], row[1], _read(row[2]), row[3])


def _raise_bill(tx: Transaction, bill: _Bill, more: int) -> None:
    # A bill that belongs to a reservation is kept there, so that both names of it agree.
    if bill.reservation is not None:
        tx.execute(
            "UPDATE reservations SET billed = billed + ? WHERE id = ?", (more, bill.reservation)
        )
    else:
        tx.execute("UPDATE bills SET billed = billed + ? WHERE key = ?", (more, bill.key))


def insert(tx: Transaction, promise: Promise, process: str) -> None:
    """Write a new reservation down."""
    tx.execute(
        "INSERT INTO reservations VALUES (?, ?, 'open', ?, 0, NULL, ?, ?)",
        (promise.id, process, promise.pico, _written(promise.keys), promise.expires_at),
    )


def _end(tx: Transaction, promise: Promise, state: State, billed: int, at: float) -> Promise:
    """Move a reservation to a state, putting a bill in place of what it holds by now."""
    held = -promise.pico if promise.state is State.OPEN else 0
    tx.execute(
        "UPDATE reservations SET state = ?, billed = ?, bill = ? WHERE id = ?",
        (state.value, billed, promise.bill, promise.id),
    )
    spent = billed - promise.billed
    kind = f"money.{state.value}"
    post(tx, kind, promise.keys, at, spent=spent, held=held, reservation=promise.id)
    return replace(promise, state=state, billed=billed)


def post(
    tx: Transaction, kind: str, keys: tuple[str, ...], at: float, **about: int | str | None
) -> None:
    """Append one entry and add it to the balances that it is about."""
    body: dict[str, Any] = {"keys": keys, "spent": 0, "held": 0, **about}
    plan, actor = _owners(keys)
    tx.event(kind, body, at=at, plan=plan, actor=actor)
    tx.execute_each(_ADD, [(key, body["spent"], body["held"]) for key in keys])


# The accounts of a call are those of the call before it, as a rule.


@lru_cache(_KEYS_MAX)
def _written(keys: tuple[str, ...]) -> str:
    return json.dumps(keys)


@lru_cache(_KEYS_MAX)
def _read(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(_KEYS_MAX)
def _owners(keys: tuple[str, ...]) -> tuple[str | None, str | None]:
    names = dict(key.split(":", 1) for key in keys)
    return names.get("plan"), names.get("actor")
