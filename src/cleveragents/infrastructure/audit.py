"""The audit trail: what happened, in order, and proof that nobody changed it afterwards.

Each event's hash covers its row and its predecessor's hash, and `chain` holds the last one.
Editing, removing or reordering rows breaks the chain at the first row touched.
Whoever can write the file can also forge the whole chain: it shows accidents and careless hands.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cleveragents.infrastructure.transaction import chained

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

    from cleveragents.infrastructure.transaction import Transaction

_NOTHING = bytes(32)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found: how much it read, and the first thing that is wrong, if any."""

    checked: int
    broken_at: int | None = None
    reason: str | None = None

    @property
    def holds(self) -> bool:
        """Say whether nothing was found."""
        return self.reason is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which events to show; what is None does not matter. `kind` may be a prefix."""

    plan: str | None = None
    actor: str | None = None
    kind: str | None = None
    since: float | None = None
    until: float | None = None


def verify_chain(connection: sqlite3.Connection) -> Verdict:
    """Walk all events and name the first one that was edited, removed or reordered."""
    previous, expected = _NOTHING, 1
    rows = connection.execute(
        "SELECT seq, at, kind, plan, actor, body, hash FROM events ORDER BY seq"
    )
    for *row, digest in rows:
        if row[0] != expected:
            return Verdict(expected - 1, expected, f"event {expected} is missing")
        if chained(previous, tuple(row)) != digest:
            return Verdict(expected - 1, expected, f"event {expected} or its place was changed")
        previous, expected = digest, expected + 1
    last, digest = connection.execute("SELECT seq, hash FROM chain").fetchone() or (0, None)
    if (last, digest) != (expected - 1, previous):
        missing = f"events from {expected} to {last} are missing"
        reason = missing if last >= expected else "the end of the chain was changed"
        return Verdict(expected - 1, expected, reason)
    return Verdict(expected - 1)


def verify_balances(connection: sqlite3.Connection) -> Verdict:
    """Add up all entries of the ledger and compare the sums with the balances that are kept."""
    checked, sums = _added_up(connection)
    kept = {
        key: [spent, held]
        for key, spent, held in connection.execute("SELECT key, spent, held FROM accounts")
    }
    for key in sorted(sums.keys() | kept.keys()):
        if sums.get(key) != kept.get(key):
            return Verdict(
                checked,
                reason=f"`{key}` keeps {kept.get(key)} (spent, held in pico-USD), "
                f"its entries add up to {sums.get(key)}",
            )
    return Verdict(checked)


def rebuild_balances(at: float) -> Callable[[Transaction], int]:
    """Make the balances anew from the entries; return how many accounts there are."""

    def write(tx: Transaction) -> int:
        _, sums = _added_up(tx)
        tx.execute("DELETE FROM accounts")
        rows = [(key, spent, held) for key, (spent, held) in sums.items()]
        tx.execute_each("INSERT INTO accounts VALUES (?, ?, ?)", rows)
        tx.event("balances.rebuilt", {"accounts": len(rows)}, at=at)
        return len(rows)

    return write


def _added_up(source: sqlite3.Connection | Transaction) -> tuple[int, dict[str, list[int]]]:
    sums: dict[str, list[int]] = {}
    checked = 0
    rows = source.execute("SELECT body FROM events WHERE kind LIKE 'money.%' ORDER BY seq")
    for (text,) in rows:
        body = json.loads(text)
        checked += 1
        for key in body.get("keys", ()):
            account = sums.setdefault(key, [0, 0])
            account[0] += body["spent"]
            account[1] += body["held"]
    return checked, sums


def events(
    connection: sqlite3.Connection, wanted: Filter, last: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the events that pass the filter, oldest first; only the `last` ones if asked so."""
    terms = [
        ("plan = ?", wanted.plan),
        ("actor = ?", wanted.actor),
        ("kind || '.' LIKE ? || '.%'", wanted.kind),
        ("at >= ?", wanted.since),
        ("at < ?", wanted.until),
    ]
    used = [(term, value) for term, value in terms if value is not None]
    where = " AND ".join(term for term, _ in used) or "1"
    newest_first = (
        f"SELECT seq, at, kind, plan, actor, body FROM events WHERE {where} "  # noqa: S608  # ours
        "ORDER BY seq DESC LIMIT ?"
    )
    # SQLite takes a negative limit for none.
    values = [*(value for _, value in used), -1 if last is None else last]
    found = connection.execute(f"SELECT * FROM ({newest_first}) ORDER BY seq", values)  # noqa: S608  # ours
    for seq, at, kind, plan, actor, body in found:
        yield {
            "seq": seq,
            "at": at,
            "kind": kind,
            "plan": plan,
            "actor": actor,
            "body": json.loads(body),
        }
