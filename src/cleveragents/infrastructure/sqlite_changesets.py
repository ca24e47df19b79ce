"""Changesets in the durable store: what was recorded survives the process."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.changeset import ChangeEntry, ChangeKind, Changeset, Content, FileMode
from cleveragents.domain.changeset_rules import (
    check_open,
    check_owner,
    claimed_id,
    never_started,
    short_id,
)
from cleveragents.domain.errors import StoreError
from cleveragents.domain.net_change import FileVersion, NetChange, Overlay
from cleveragents.infrastructure.stored_text import check_names, plain
from cleveragents.infrastructure.transaction import chained

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from cleveragents.infrastructure.store import Store
    from cleveragents.infrastructure.transaction import Transaction

#: How many open changesets are remembered; those beyond are read again when they are written to.
OVERLAYS_MAX: Final = 256

_HEADS: Final = (
    "SELECT number, entries, digest, id, plan, actor, node, attempt, finished FROM changesets"
)
_BY_ID: Final = f"{_HEADS} WHERE id = ?"
_BY_PLAN: Final = f"{_HEADS} WHERE plan = ? ORDER BY number"
_ENTRIES: Final = (
    "SELECT kind, path, old_path, before, after, mode_before, mode_after,"
    " actor, node, attempt, tool_call, at FROM changes WHERE changeset = ? ORDER BY number"
)
_PLACES: Final = "SELECT kind, path, old_path FROM changes WHERE changeset = ? ORDER BY number"


@dataclass(frozen=True, slots=True)
class _Row:
    """A changeset as it stands in the store; `head` is its snapshot without entries."""

    number: int
    entries: int
    digest: bytes
    head: Changeset


class SqliteChangesetStore:
    """A `ChangesetStore` whose every method is one transaction of the durable store.

    Safe for any number of threads and processes on one file: a changeset takes its entries in one
    order, whoever records them, and refuses what cannot follow, also after a restart.
    A call that returned is durable and stands in the audit trail; a refused one left no trace.
    Equal contents are kept once. Memory holds the paths of open changesets, and no content.
    """

    def __init__(
        self,
        store: Store,
        *,
        new_id: Callable[[], str] = short_id,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._new_id = new_id
        self._clock = clock
        # What open changesets did so far, the least used first. Only the store's writer thread
        # touches it. A write may be undone after it was done here: the digest then differs from
        # that of the rows, and they are read again.
        self._overlays: dict[str, tuple[bytes, Overlay]] = {}

    def start(
        self,
        plan_id: str,
        *,
        actor: str | None = None,
        node: str | None = None,
        attempt: int | None = None,
    ) -> str:
        """Open a changeset of a plan and return its id."""
        check_names(plan_id=plan_id, actor=actor, node=node)
        at = self._clock()

        def claim(changeset_id: str) -> bool:
            def write(tx: Transaction) -> bool:
                added = tx.execute(
                    "INSERT INTO changesets (id, plan, actor, node, attempt) VALUES (?, ?, ?, ?, ?)"
                    " ON CONFLICT (id) DO NOTHING",
                    (changeset_id, plan_id, actor, node, attempt),
                )
                free = added.rowcount == 1
                if free:
                    body = {"changeset": changeset_id, "node": node, "attempt": attempt}
                    tx.event("changeset.started", body, at=at, plan=plan_id, actor=actor)
                return free

            return self._store.write(write)

        return claimed_id(self._new_id, claim)

    def record(self, changeset_id: str, *entries: ChangeEntry) -> None:
        """Append entries to an open changeset, or refuse them all and change nothing."""
        for entry in entries:
            check_names(actor=entry.actor, node=entry.node, tool_call=entry.tool_call)
        now = self._clock()
        timed = [replace(one, at=now if one.at is None else float(one.at)) for one in entries]

        def write(tx: Transaction) -> None:
            for entry in timed:
                self._record(tx, changeset_id, entry, now)

        self._store.write(write)

    def finish(self, changeset_id: str) -> None:
        """Close an open changeset for good."""
        now = self._clock()
        self._store.write(lambda tx: self._finish(tx, changeset_id, now))

    def get(self, changeset_id: str) -> Changeset:
        """Return a snapshot of a changeset."""
        with self._store.read() as connection:
            return _snapshot(connection, _found(connection, changeset_id), {})

    def of_plan(self, plan_id: str) -> tuple[Changeset, ...]:
        """Return snapshots of a plan's changesets in the order in which they were started."""
        check_names(plan_id=plan_id)
        contents: dict[str, Content] = {}
        with self._store.read() as connection:
            rows = [_row(found) for found in connection.execute(_BY_PLAN, (plan_id,))]
            return tuple(_snapshot(connection, row, contents) for row in rows)

    def _record(self, tx: Transaction, changeset_id: str, entry: ChangeEntry, now: float) -> None:
        row = _found(tx, changeset_id)
        check_open(row.head)
        check_owner(row.head, entry)
        overlay = self._taken_overlay(tx, row)
        overlay.add([_place(entry.kind, entry.path, entry.old_path)])
        digest = _add_entry(tx, row, entry)
        tx.event(
            "change.recorded",
            _told(row, entry),
            at=now,
            plan=row.head.plan_id,
            actor=entry.actor or row.head.actor,
        )
        self._overlays[changeset_id] = (digest, overlay)
        if len(self._overlays) > OVERLAYS_MAX:
            del self._overlays[next(iter(self._overlays))]

    def _taken_overlay(self, tx: Transaction, row: _Row) -> Overlay:
        """Take the overlay out, so that it is not found half changed if the write raises."""
        known = self._overlays.pop(row.head.id, None)
        if known is not None and known[0] == row.digest:
            return known[1]
        overlay = Overlay()
        for kind, path, old_path in tx.execute(_PLACES, (row.number,)):
            overlay.add([_place(kind, *_paths(path, old_path))])
        return overlay

    def _finish(self, tx: Transaction, changeset_id: str, now: float) -> None:
        row = _found(tx, changeset_id)
        check_open(row.head)
        self._overlays.pop(changeset_id, None)
        tx.execute("UPDATE changesets SET finished = 1 WHERE number = ?", (row.number,))
        tx.event(
            "changeset.finished",
            {"changeset": changeset_id, "entries": row.entries, "digest": row.digest.hex()},
            at=now,
            plan=row.head.plan_id,
            actor=row.head.actor,
        )


def _found(source: Transaction | sqlite3.Connection, changeset_id: str) -> _Row:
    # What UTF-8 cannot hold is no id of ours: spelled out, it is not found.
    found = source.execute(_BY_ID, (plain(changeset_id),)).fetchone()
    if found is None:
        raise never_started(changeset_id)
    return _row(found)


def _row(found: tuple[Any, ...]) -> _Row:
    number, entries, digest, changeset_id, plan_id, actor, node, attempt, finished = found
    head = Changeset(
        id=changeset_id,
        plan_id=plan_id,
        actor=actor,
        node=node,
        attempt=attempt,
        finished=bool(finished),
    )
    return _Row(number, entries, digest, head)


def _add_entry(tx: Transaction, row: _Row, entry: ChangeEntry) -> bytes:
    """Append an entry to its changeset; return the changeset's digest after it."""
    for content in (entry.before, entry.after):
        if content is not None:
            tx.execute(
                "INSERT INTO contents VALUES (?, ?, ?) ON CONFLICT (sha256) DO NOTHING",
                (content.sha256, content.size, content.data),
            )
    kind, path, old_path, *rest = facts = _facts(entry)
    tx.execute(
        "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.number,
            row.entries + 1,
            kind,
            _bytes_of(path),
            old_path and _bytes_of(old_path),
            *rest,
        ),
    )
    digest = chained(row.digest, facts)
    tx.execute(
        "UPDATE changesets SET entries = ?, digest = ? WHERE number = ?",
        (row.entries + 1, digest, row.number),
    )
    return digest


def _facts(entry: ChangeEntry) -> tuple[Any, ...]:
    return (
        entry.kind,
        entry.path,
        entry.old_path,
        entry.before and entry.before.sha256,
        entry.after and entry.after.sha256,
        entry.mode_before,
        entry.mode_after,
        entry.actor,
        entry.node,
        entry.attempt,
        entry.tool_call,
        entry.at,
    )


def _told(row: _Row, entry: ChangeEntry) -> dict[str, Any]:
    """Return an entry as the audit trail tells it: contents by their hash."""
    kind, path, old_path, before, after, mode_before, mode_after, *_ = _facts(entry)
    return {
        "changeset": row.head.id,
        "number": row.entries + 1,
        "kind": kind,
        "path": plain(path),
        "old_path": old_path and plain(old_path),
        "before": before,
        "after": after,
        "mode_before": mode_before,
        "mode_after": mode_after,
        "node": entry.node or row.head.node,
        "attempt": row.head.attempt if entry.attempt is None else entry.attempt,
        "tool_call": entry.tool_call,
        "at": entry.at,
    }


def _snapshot(connection: sqlite3.Connection, row: _Row, contents: dict[str, Content]) -> Changeset:
    """Read a changeset with its entries, and check them against its digest."""
    found = connection.execute(_ENTRIES, (row.number,))
    rows = [(kind, *_paths(path, old_path), *rest) for kind, path, old_path, *rest in found]
    digest = bytes(32)
    for facts in rows:
        digest = chained(digest, facts)
    if digest != row.digest:
        raise _damaged(f"the entries of changeset `{row.head.id}` are not those that were recorded")
    entries = tuple(_entry(connection, facts, contents) for facts in rows)
    return replace(row.head, entries=entries)


def _entry(
    connection: sqlite3.Connection, facts: tuple[Any, ...], contents: dict[str, Content]
) -> ChangeEntry:
    kind, path, old_path, before, after, mode_before, mode_after, *by = facts
    actor, node, attempt, tool_call, at = by
    return ChangeEntry(
        kind=ChangeKind(kind),
        path=path,
        old_path=old_path,
        before=before and _content(connection, before, contents),
        after=after and _content(connection, after, contents),
        mode_before=mode_before and FileMode(mode_before),
        mode_after=mode_after and FileMode(mode_after),
        actor=actor,
        node=node,
        attempt=attempt,
        tool_call=tool_call,
        at=at,
    )


def _content(connection: sqlite3.Connection, sha256: str, contents: dict[str, Content]) -> Content:
    known = contents.get(sha256)
    if known is None:
        query = "SELECT data FROM contents WHERE sha256 = ?"
        found = connection.execute(query, (sha256,)).fetchone()
        known = None if found is None else Content(found[0])
        if known is None or known.sha256 != sha256:
            raise _damaged(f"the content {sha256} is not what was recorded")
        contents[sha256] = known
    return known


def _bytes_of(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _paths(path: bytes, old_path: bytes | None) -> tuple[str, str | None]:
    return (
        path.decode("utf-8", "surrogateescape"),
        None if old_path is None else old_path.decode("utf-8", "surrogateescape"),
    )


def _place(kind: str, path: str, old_path: str | None) -> NetChange:
    """Return what a change does to paths: enough to refuse what cannot follow it."""
    return NetChange(
        None if kind == ChangeKind.CREATE else FileVersion(old_path or path),
        None if kind == ChangeKind.DELETE else FileVersion(path),
    )


def _damaged(what: str) -> StoreError:
    return StoreError(
        f"The store is damaged: {what}",
        code="CA6004",
        hint="Put back a backup",
    )
