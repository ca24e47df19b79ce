"""Limits in the store: one set for all processes on the file, and thresholds reported once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from cleveragents.domain.budget import Limit, ScopeKind
from cleveragents.domain.money import Money
from cleveragents.providers.budget_account import threshold_reached

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.domain.event import Notice
    from cleveragents.infrastructure.transaction import Transaction


def limits_of(tx: Any) -> tuple[Limit, ...]:
    """Return the limits in force, by kind and name."""
    rows = tx.execute("SELECT kind, name, hard, amount, warn_at FROM limits ORDER BY 1, 2, 3")
    return tuple(
        Limit(
            cast("ScopeKind", kind),
            Money(amount),
            name=name or None,
            hard=bool(hard),
            warn_at=tuple(json.loads(warn_at)),
        )
        for kind, name, hard, amount, warn_at in rows
    )


def limits_in(tx: Transaction) -> tuple[Limit, ...]:
    """Return the limits in force for all writes of a group, read once."""
    limits: tuple[Limit, ...] | None = tx.kept.get("limits")
    if limits is None:
        limits = tx.kept["limits"] = limits_of(tx)
    return limits


def set_limit(limit: Limit, at: float) -> Callable[[Transaction], None]:
    """Put a limit in place of one of the same kind, name and hardness."""

    def write(tx: Transaction) -> None:
        tx.execute(
            "INSERT OR REPLACE INTO limits VALUES (?, ?, ?, ?, ?)",
            (*_place(limit), limit.amount.pico, json.dumps(limit.warn_at)),
        )
        tx.kept.pop("limits", None)
        about = {"amount": limit.amount.pico, "warn_at": limit.warn_at}
        tx.event("limit.set", {**_body(limit), **about}, at=at)

    return write


def remove_limit(limit: Limit, at: float) -> Callable[[Transaction], bool]:
    """Lift the limit of this kind, name and hardness; false when there was none."""

    def write(tx: Transaction) -> bool:
        there = tx.execute(
            "DELETE FROM limits WHERE kind = ? AND name = ? AND hard = ?", _place(limit)
        ).rowcount
        tx.kept.pop("limits", None)
        if there:
            tx.event("limit.removed", _body(limit), at=at)
        return there == 1

    return write


def hard_limit_of(key: str, limits: tuple[Limit, ...]) -> Money | None:
    """Return the tightest hard limit of a scope."""
    return min((one.amount for one in limits if one.hard and one.covers(key)), default=None)


def pass_thresholds(tx: Transaction, keys: tuple[str, ...], at: float) -> tuple[Notice, ...]:
    """Return a notice for each threshold reached by now that no process has reported yet."""
    watched = [limit for limit in limits_in(tx) if limit.warn_at]
    notices = []
    for key in keys if watched else ():
        spent = tx.execute("SELECT spent FROM accounts WHERE key = ?", (key,)).fetchone()[0]
        for limit in watched:
            for pico, share in limit.thresholds() if limit.covers(key) else ():
                mark = (key, limit.hard, limit.amount.pico, share)
                if spent >= pico and _first(tx, mark):
                    notice = threshold_reached(key, Money(spent), share, limit)
                    tx.event("money.warned", {"scope": key, "share": share, "spent": spent}, at=at)
                    notices.append(notice)
    return tuple(notices)


def _first(tx: Transaction, mark: tuple[Any, ...]) -> bool:
    return tx.execute("INSERT OR IGNORE INTO warned VALUES (?, ?, ?, ?)", mark).rowcount == 1


def _place(limit: Limit) -> tuple[str, str, int]:
    return limit.kind, limit.name or "", int(limit.hard)


def _body(limit: Limit) -> dict[str, Any]:
    return {"kind": limit.kind, "name": limit.name, "hard": limit.hard}
