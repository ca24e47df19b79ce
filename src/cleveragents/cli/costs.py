"""`cleveragents costs`: what was spent and promised, what is left, and what nobody confirmed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cleveragents.cli import output, state
from cleveragents.cli.arguments import amount_of, kind_of
from cleveragents.cli.table import money_column, table
from cleveragents.domain.budget import Balance, CalendarDay, scope_key, zone_of
from cleveragents.domain.errors import RequestError
from cleveragents.domain.money import Money
from cleveragents.infrastructure import ledger
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker, DurableReservation
from cleveragents.infrastructure.limits import limits_of
from cleveragents.providers.reservation import State
from cleveragents.settings import load

if TYPE_CHECKING:
    import sqlite3
    from argparse import Namespace
    from collections.abc import Callable, Collection

    from cleveragents.domain.budget import ScopeKind
    from cleveragents.domain.event import Notice

# Also those that the next process on the store will charge, because theirs died.
_UNCONFIRMED: Final = (
    "SELECT id, state, pico, billed, keys, expires_at, bill FROM reservations "
    "WHERE state IN ('open', 'unconfirmed') AND (state = 'unconfirmed' OR expires_at <= :now "
    "OR process NOT IN (SELECT id FROM processes WHERE alive_until > :now)) "
    "ORDER BY expires_at, id"
)
_EACH: Final = "SELECT key, spent, held FROM accounts WHERE key >= ? AND key < ?"
_ALL: Final = "SELECT coalesce(sum(spent), 0), coalesce(sum(held), 0) FROM ({}) AS days"


@dataclass(frozen=True, slots=True)
class Books:
    """What one snapshot of the store says about money, by one kind of scope."""

    kind: ScopeKind
    balances: tuple[Balance, ...]
    #: What no scope of the kind was charged; None for labels, of which a call may have many.
    rest: Balance | None
    total: Balance
    unconfirmed: tuple[ledger.Promise, ...]


def show_costs(options: Namespace, clock: Callable[[], float] = time.time) -> int:
    """Print what every scope of a kind has spent, and below it what is unconfirmed."""
    kind = kind_of(options.by)
    with state.reading() as connection:
        books = None if connection is None else books_of(connection, kind, clock())
    if books is None or not (books.balances or books.rest):
        return state.nothing(
            f"No costs by {kind} yet", "Run `cleveragents budget set day 5` to limit each day"
        )
    if options.json:
        for line in _as_records(books):
            output.record(line)
        return 0
    output.data(_as_table(books))
    if books.unconfirmed:
        first = books.unconfirmed[0]
        output.data(_unconfirmed_as_table(books.unconfirmed))
        output.talk(
            f"\nhint: Run `cleveragents costs settle {first.id} {Money(first.pico).usd:f}` "
            f"with what was billed, or `cleveragents costs release {first.id}` if nothing was"
        )
    return 0


def settle(options: Namespace) -> int:
    """Put what was billed in place of what stands charged for a call without a bill."""
    amount = amount_of(options.amount)
    # A release may be taken back by a bill, so a wrong one is no loss.
    correctable = {State.UNCONFIRMED, State.RELEASED}
    return _correct(options, correctable, lambda reservation: reservation.settle(amount))


def release(options: Namespace) -> int:
    """Take back what stands charged for a call that was not billed."""
    return _correct(options, {State.UNCONFIRMED}, DurableReservation.release)


def books_of(connection: sqlite3.Connection, kind: ScopeKind, now: float) -> Books:
    """Read the books by one kind of scope; a scope under a budget is there before it spends."""
    limits = limits_of(connection)
    today = CalendarDay.at(now, zone_of(load()[0].zone))
    window = {"day": today.day, "month": today.month}.get(kind)
    rows = connection.execute(_EACH, _range(kind)).fetchall()
    accounts = {key: (spent, held) for key, spent, held in rows}
    for limit in limits:
        name = limit.name or window
        if limit.hard and limit.kind == kind and name is not None:
            accounts.setdefault(scope_key(kind, name), (0, 0))
    balances = [ledger.balance_from(key, *sums, limits) for key, sums in accounts.items()]
    # Every entry is charged to its day, so all days together are all money.
    spent, held = connection.execute(_ALL.format(_EACH), _range("day")).fetchone()
    total = Balance(kind, "total", Money(spent), Money(held), None)
    promises = connection.execute(_UNCONFIRMED, {"now": now})
    return Books(
        kind,
        tuple(sorted(balances, key=_by_window if window else _by_spending)),
        None if kind == "label" else _rest(total, balances),
        total,
        tuple(ledger.promise_from(row) for row in promises),
    )


def _range(kind: str) -> tuple[str, str]:
    return f"{kind}:", f"{kind};"  # `;` follows `:`, so this is every key of the kind


def _by_window(balance: Balance) -> tuple[Any, ...]:
    return (balance.name,)


def _by_spending(balance: Balance) -> tuple[Any, ...]:
    return -balance.spent.pico, balance.name


def _rest(total: Balance, balances: list[Balance]) -> Balance | None:
    spent = total.spent.pico - sum(one.spent.pico for one in balances)
    held = total.promised.pico - sum(one.promised.pico for one in balances)
    if (spent, held) == (0, 0):
        return None
    return Balance(total.kind, f"(no {total.kind})", Money(spent), Money(held), None)


def _as_table(books: Books) -> str:
    rows = [*books.balances, *([books.rest] if books.rest else []), books.total]
    columns = (
        [one.name for one in rows],
        money_column([one.spent for one in rows], absent=""),
        money_column([one.promised for one in rows], absent=""),
        money_column([one.limit for one in rows], absent="none"),
        money_column([one.remaining for one in rows], absent="-"),
    )
    *body, total = zip(*columns, strict=True)
    head = (books.kind, "spent", "promised", "limit", "left")
    return table(head, [*body, (*total[:3], "", "")], right=head[1:])


def _unconfirmed_as_table(promises: tuple[ledger.Promise, ...]) -> str:
    bounds = money_column([Money(one.pico) for one in promises], absent="")
    rows = [
        (one.id, bound, _counted_as(one), " ".join(one.keys))
        for one, bound in zip(promises, bounds, strict=True)
    ]
    head = ("unconfirmed", "upper bound", "counted as", "scopes")
    return f"\n{table(head, rows, right=('upper bound',))}"


def _counted_as(promise: ledger.Promise) -> str:
    return "promised" if promise.state is State.OPEN else "spent"


def _as_records(books: Books) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [
        {"kind": "balance", "by": books.kind, "name": one.name, **_amounts(one)}
        for one in books.balances
    ]
    if books.rest is not None:
        lines.append({"kind": "balance", "by": books.kind, "name": None, **_amounts(books.rest)})
    lines.append({"kind": "total", **_amounts(books.total)})
    lines += [
        {
            "kind": "unconfirmed",
            "id": one.id,
            "upper_bound_usd": f"{Money(one.pico).usd:f}",
            "counted_as": _counted_as(one),
            "scopes": one.keys,
        }
        for one in books.unconfirmed
    ]
    return lines


def _amounts(balance: Balance) -> dict[str, str | None]:
    amounts = {
        "spent_usd": balance.spent,
        "promised_usd": balance.promised,
        "limit_usd": balance.limit,
        "left_usd": balance.remaining,
    }
    return {name: None if one is None else f"{one.usd:f}" for name, one in amounts.items()}


def _correct(
    options: Namespace,
    correctable: Collection[State],
    correct: Callable[[DurableReservation], object],
) -> int:
    if not state.is_there():
        raise _unknown(options.id)
    with state.writing() as store, DurableCostTracker(store, on_notice=_warn) as tracker:
        with store.read() as connection:
            known = "SELECT 1 FROM reservations WHERE id = ?"
            if connection.execute(known, (options.id,)).fetchone() is None:
                raise _unknown(options.id)
            reservation = DurableReservation(tracker, ledger.promise_of(connection, options.id))
        if reservation.state not in correctable:
            raise _not_correctable(reservation)
        before = f"{reservation.charged}, {reservation.state.value}"
        correct(reservation)
    now = f"{reservation.charged}, {reservation.state.value}"
    if options.json:
        output.record({"kind": "correction", "id": options.id, "now": now, "before": before})
    else:
        output.data(f"reservation `{options.id}`\n{output.facts({'now': now, 'before': before})}")
    return 0


def _unknown(reservation: str) -> RequestError:
    return RequestError(
        f"The store knows no reservation {reservation!r}",
        hint="Run `cleveragents costs` to list what is unconfirmed",
    )


def _not_correctable(reservation: DurableReservation) -> RequestError:
    if reservation.state is State.OPEN:
        why = "is still open: the process that made it will say what it cost"
    else:
        why = f"is {reservation.state.value} already, at {reservation.charged}"
    return RequestError(
        f"Reservation `{reservation.id}` {why}",
        facts={"scopes": " ".join(reservation.scopes), "upper bound": reservation.upper_bound},
        hint="Run `cleveragents costs` to list what is unconfirmed",
    )


def _warn(notice: Notice) -> None:
    # What is unconfirmed is listed by `cleveragents costs`; a threshold is told once, so here.
    if notice.code != "CA2106":
        output.talk(f"warning[{notice.code}]: {notice.message}\n{output.facts(notice.facts)}")
