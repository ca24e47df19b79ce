"""Slices as writes of the store: money reserved for many calls of one process at once.

A slice is a reservation that grows, shrinks and is drawn from. One that is no longer open was
charged because its process was not heard of: whatever it still reports is part of that charge.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from cleveragents.domain.money import Money
from cleveragents.infrastructure.ledger import balances, find_promise, insert, post
from cleveragents.infrastructure.limits import limits_in, pass_thresholds
from cleveragents.providers.budget_account import refusal
from cleveragents.providers.reservation import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.domain.errors import BudgetExceeded
    from cleveragents.domain.event import Notice
    from cleveragents.infrastructure.ledger import Promise
    from cleveragents.infrastructure.transaction import Transaction

#: A slice does not expire by time, only with its process.
NEVER = math.inf


def grow(
    part: Promise, least: int, process: str, at: float
) -> Callable[[Transaction], int | BudgetExceeded]:
    """Reserve more for a slice: what is wished, or the least that helps; or return the refusal.

    It returns how much was added; 0 says that the slice is lost, and another must be drawn.
    """

    def write(tx: Transaction) -> int | BudgetExceeded:
        found = find_promise(tx, part.id)
        if found is not None and found.state is not State.OPEN:
            return 0
        held = balances(tx, part.keys, limits_in(tx))
        rooms = [one.remaining.pico for one in held if one.remaining is not None]
        room = min(rooms, default=part.pico)
        if least > room:
            short = min(
                (one for one in held if one.remaining is not None),
                key=lambda one: one.remaining or Money(0),
            )
            return refusal(short, Money(least))
        # A slice takes a small share of what is left, so that others find something too.
        added = max(least, min(part.pico, room // 16))
        if found is None:
            insert(tx, replace(part, pico=added), process)
        else:
            _resize(tx, part.id, added)
        post(tx, "money.reserved", part.keys, at, held=added, reservation=part.id)
        return added

    return write


def shrink(part: Promise, pico: int, at: float) -> Callable[[Transaction], None]:
    """Give a part of a slice back that no call was promised."""

    def write(tx: Transaction) -> None:
        if _is_open(tx, part.id):
            _resize(tx, part.id, -pico)
            post(tx, "money.returned", part.keys, at, held=-pico, reservation=part.id)

    return write


def draw(
    part: Promise, pico: int, calls: int, at: float
) -> Callable[[Transaction], tuple[Notice, ...]]:
    """Charge what calls have cost to the slice that they were promised from."""

    def write(tx: Transaction) -> tuple[Notice, ...]:
        if not _is_open(tx, part.id):
            return ()
        _resize(tx, part.id, -pico)
        name = part.id
        post(
            tx,
            "money.drawn",
            part.keys,
            at,
            spent=pico,
            held=-pico,
            reservation=name,
            calls=calls,
        )
        return pass_thresholds(tx, part.keys, at)

    return write


def split(part: Promise, own: Promise, process: str, at: float) -> Callable[[Transaction], bool]:
    """Turn a call's part of a slice into a reservation of its own; false when the slice is lost."""

    def write(tx: Transaction) -> bool:
        if not _is_open(tx, part.id):
            return False
        _resize(tx, part.id, -own.pico)
        insert(tx, own, process)
        post(tx, "money.split", own.keys, at, reservation=own.id, slice=part.id)
        return True

    return write


def end(part: Promise) -> Callable[[Transaction], None]:
    """Close a slice that is used up; nothing of money changes by it."""

    def write(tx: Transaction) -> None:
        tx.execute(
            "UPDATE reservations SET state = ? WHERE id = ? AND state = 'open' AND pico = 0",
            (State.RELEASED.value, part.id),
        )

    return write


def want(until: float) -> Callable[[Transaction], None]:
    """Ask every process to give idle money back for a while."""

    def write(tx: Transaction) -> None:
        tx.execute("UPDATE wanted SET until = max(until, ?)", (until,))

    return write


def _is_open(tx: Transaction, reservation: str) -> bool:
    found = find_promise(tx, reservation)
    return found is not None and found.state is State.OPEN


def _resize(tx: Transaction, reservation: str, more: int) -> None:
    tx.execute("UPDATE reservations SET pico = pico + ? WHERE id = ?", (more, reservation))
