"""Plan trees, merges and conflicts as rows of the store."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cleveragents.domain.conflict import Conflict, ConflictState, Side
from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.sandbox.sandbox import PlanTree
from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from cleveragents.infrastructure.transaction import Transaction

    Source: TypeAlias = Transaction | sqlite3.Connection


@dataclass(frozen=True, slots=True)
class MergeRow:
    """A sealed changeset on its way into its plan's tree."""

    changeset_id: str
    plan_id: str
    actor: str | None
    node: str | None
    attempt: int | None
    #: The commits: what the attempt started from, and what it made of it.
    start: str
    theirs: str
    #: `sealed`, `merged`, `conflicted` or `rejected`.
    state: str
    #: In which order it was merged, from 1.
    merged: int | None
    head: str | None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A path that a sealed changeset could not take."""

    changeset_id: str
    path: str
    reason: str


_MERGES: Final = (
    "SELECT m.changeset, m.plan, c.actor, c.node, c.attempt, m.start, m.theirs, m.state, m.merged,"
    " m.head FROM merges m JOIN changesets c ON c.id = m.changeset"
)
#: The event of a file that a changeset could not take.
LEFT_OUT: Final = "changeset.left_out"
_CONFLICTS: Final = "SELECT id, plan, path, body, state, choice FROM conflicts"


def tree_row(source: Source, plan_id: str) -> PlanTree:
    """Return a plan's tree; CA4107 when the plan has none."""
    found = source.execute("SELECT base, head FROM plan_trees WHERE plan = ?", (plain(plan_id),))
    row = found.fetchone()
    if row is None:
        raise unknown("Plan", plan_id, "Run `cleveragents changes show` to see which there are")
    return PlanTree(*row)


def merge_row(source: Source, changeset_id: str) -> MergeRow:
    """Return what became of a changeset; CA4107 when it was never sealed."""
    row = source.execute(f"{_MERGES} WHERE m.changeset = ?", (plain(changeset_id),)).fetchone()
    if row is None:
        raise unknown("Sealed changeset", changeset_id, "Seal the sandbox of the attempt first")
    return MergeRow(*row)


def is_sealed(source: Source, changeset_id: str) -> bool:
    """Tell whether a changeset was sealed, whatever became of it since."""
    found = source.execute("SELECT 1 FROM merges WHERE changeset = ?", (plain(changeset_id),))
    return found.fetchone() is not None


def left_out_rows(source: Source, changeset_id: str) -> dict[str, str]:
    """Return what a changeset could not take, and why."""
    query = "SELECT body FROM events WHERE plan = (SELECT plan FROM merges WHERE changeset = ?)"
    found = source.execute(f"{query} AND kind = ? ORDER BY seq", (plain(changeset_id), LEFT_OUT))
    told = [json.loads(body) for (body,) in found]
    return {one["path"]: one["reason"] for one in told if one["changeset"] == changeset_id}


def left_out_of_plan(source: Source, plan_id: str) -> tuple[LeftOut, ...]:
    """Return what the changesets of a plan could not take, but for those that were rejected."""
    query = (
        "SELECT body FROM events WHERE plan = ? AND kind = ? AND json_extract(body, '$.changeset')"
        " IN (SELECT changeset FROM merges WHERE state != 'rejected') ORDER BY seq"
    )
    told = [json.loads(body) for (body,) in source.execute(query, (plain(plan_id), LEFT_OUT))]
    return tuple(LeftOut(one["changeset"], one["path"], one["reason"]) for one in told)


def check_of_plan(source: Source, changeset_id: str, plan_id: str) -> None:
    """Refuse a changeset that is not known, or that is another plan's."""
    query = "SELECT plan FROM changesets WHERE id = ?"
    row = source.execute(query, (plain(changeset_id),)).fetchone()
    if row is None:
        raise unknown("Changeset", changeset_id, "Pass an id that `start_changeset()` returned")
    if row[0] != plan_id:
        raise PlanError(
            f"Changeset `{changeset_id}` is of plan `{row[0]}`, not of plan `{plan_id}`",
            code="CA4108",
            facts={"changeset": changeset_id, "plan": row[0]},
            hint="Seal it into the plan that it was started for",
        )


def merge_rows(source: Source, plan_id: str) -> tuple[MergeRow, ...]:
    """Return a plan's sealed changesets in the order in which they were sealed."""
    rows = source.execute(f"{_MERGES} WHERE m.plan = ? ORDER BY m.number", (plan_id,))
    return tuple(MergeRow(*row) for row in rows)


def conflict_row(source: Source, conflict_id: str) -> Conflict:
    """Return a conflict; CA4107 when there is none of this id."""
    row = source.execute(f"{_CONFLICTS} WHERE id = ?", (plain(conflict_id),)).fetchone()
    if row is None:
        raise unknown("Conflict", conflict_id, "Run `cleveragents changes conflicts` to see them")
    return _conflict(row)


def conflict_rows(
    source: Source, *, plan_id: str | None = None, changeset_id: str | None = None
) -> tuple[Conflict, ...]:
    """Return the conflicts of a plan, of a changeset, or all, in the order of their finding."""
    rows = source.execute(
        f"{_CONFLICTS} WHERE (?1 IS NULL OR plan = ?1) AND (?2 IS NULL OR changeset = ?2)"
        " ORDER BY number",
        (plan_id, changeset_id),
    )
    return tuple(_conflict(row) for row in rows)


def add_conflicts(tx: Transaction, changeset_id: str, conflicts: Iterable[Conflict]) -> None:
    """Keep new conflicts of a changeset."""
    for one in conflicts:
        sides = {name: asdict(getattr(one, name)) for name in ("base", "ours", "theirs")}
        body = json.dumps({"kind": one.kind, **sides})
        tx.execute(
            "INSERT INTO conflicts (id, plan, changeset, path, body, state)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (one.id, one.plan_id, changeset_id, os.fsencode(one.path), body, one.state),
        )


def set_conflict(
    tx: Transaction, conflict_id: str, state: ConflictState, choice: str | None = None
) -> None:
    """Say that a conflict is decided, or over."""
    tx.execute(
        "UPDATE conflicts SET state = ?, choice = ? WHERE id = ?", (state, choice, conflict_id)
    )


def last_writers(source: Source, row: MergeRow, paths: Iterable[str]) -> dict[str, Side]:
    """Return who wrote each of these files into the plan's tree last."""
    found = {}
    for path in paths:
        name = os.fsencode(path)
        writer = source.execute(
            "SELECT c.id, coalesce(e.actor, c.actor), coalesce(e.node, c.node)"
            " FROM merges m JOIN changesets c ON c.id = m.changeset"
            " JOIN changes e ON e.changeset = c.number"
            " WHERE m.plan = ? AND m.state = 'merged' AND (e.path = ? OR e.old_path = ?)"
            " ORDER BY m.merged DESC LIMIT 1",
            (row.plan_id, name, name),
        ).fetchone()
        if writer is not None:
            found[path] = Side(changeset=writer[0], actor=writer[1], node=writer[2])
    return found


def unknown(what: str, name: str, hint: str) -> PlanError:
    """Return the refusal of a name that nothing has."""
    return PlanError(f"{what} {name!r} is not known", code="CA4107", facts={"id": name}, hint=hint)


def _conflict(row: tuple[Any, ...]) -> Conflict:
    conflict_id, plan_id, path, body, state, choice = row
    told = json.loads(body)
    return Conflict(
        id=conflict_id,
        plan_id=plan_id,
        path=os.fsdecode(path),
        kind=told["kind"],
        base=_side(told["base"]),
        ours=_side(told["ours"]),
        theirs=_side(told["theirs"]),
        state=ConflictState(state),
        choice=choice,
    )


def _side(told: dict[str, Any]) -> Side:
    side = Side(**told)
    return replace(side, lines=tuple((first, last) for first, last in side.lines))
