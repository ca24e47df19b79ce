"""Applies and reverts as rows of the store, and what they say of where a plan stands."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cleveragents.infrastructure.changes.merge_rows import merge_rows, tree_row
from cleveragents.infrastructure.changes.selection import Level, PlanState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.infrastructure.apply.target import Recovered
    from cleveragents.infrastructure.changes.merge_rows import Source
    from cleveragents.infrastructure.store import Store
    from cleveragents.infrastructure.transaction import Transaction

PAST: Final = {"apply": "applied", "revert": "reverted"}

_UNDONE: Final = "apply.undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """An apply or a revert that was done; `before` and `after` are commits."""

    id: str
    plan_id: str
    kind: str
    #: What a revert takes back.
    of_apply: str | None
    before: str
    after: str
    #: How much of the plan is in the user's tree since.
    level: Level
    actors: tuple[str, ...]
    paths: tuple[str, ...]
    files: int
    at: float
    #: The commit of the user's own repository that was made for it, before the tree was touched.
    commit: str | None = None
    #: Old files that somebody still wrote to, kept in `.cleveragents/rescued`; not in the store.
    rescued: tuple[str, ...] = field(default=(), compare=False)


def note_of(one: Applied) -> bytes:
    """Return all of it as bytes, so that whoever finishes it can write it down too."""
    body = {
        "actors": one.actors,
        "paths": one.paths,
        "files": one.files,
        "changesets": sorted(one.level.changesets),
        **({} if one.commit is None else {"commit": one.commit}),
    }
    names = (one.id, one.plan_id, one.kind, one.of_apply)
    versions = (one.before, one.after, one.level.commit)
    return json.dumps([*names, *versions, json.dumps(body), one.at]).encode("ascii")


def plan_state(source: Source, plan_id: str) -> tuple[PlanState, tuple[Applied, ...]]:
    """Return where a plan stands and what was applied of it; CA4107 when it is not known."""
    tree, merges = tree_row(source, plan_id), merge_rows(source, plan_id)
    return PlanState(plan_id, tree, merges), apply_rows(source, plan_id)


def apply_rows(source: Source, plan_id: str | None = None) -> tuple[Applied, ...]:
    """Return what was applied and reverted, oldest first."""
    found = source.execute(
        "SELECT id, plan, kind, of_apply, before, after, level, body, at FROM applies"
        " WHERE ?1 IS NULL OR plan = ?1 ORDER BY number",
        (plan_id,),
    )
    return tuple(_applied(row) for row in found)


def record(store: Store, note: bytes) -> None:
    """Write down that an apply is done; the same twice is once."""
    row = json.loads(note)
    apply_id, plan_id, kind, of_apply, before, after, level, body, at = row

    def write(tx: Transaction) -> None:
        added = tx.execute(
            "INSERT INTO applies (id, plan, kind, of_apply, before, after, level, body, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            tuple(row),
        )
        if added.rowcount:
            told = {"apply": apply_id, "of": of_apply, "before": before, "after": after}
            facts = {**told, "level": level, **json.loads(body)}
            tx.event(f"plan.{PAST[kind]}", facts, at=at, plan=plan_id)

    store.write(write)


def record_recovered(store: Store, recovered: Recovered, at: float) -> None:
    """Write down how an apply of a dead process ended; the same twice is once."""
    if recovered.outcome == "new":
        if recovered.note:  # else it was no plan's
            record(store, recovered.note)
        return
    # One that died before it could write a note had touched nothing.
    plan_id = plan_and_commit(recovered.note)[0]
    body = {"apply": recovered.apply_id, "edited": len(recovered.edited)}

    def write(tx: Transaction) -> None:
        told = tx.execute(
            "SELECT 1 FROM events WHERE kind = ? AND json_extract(body, '$.apply') = ?",
            (_UNDONE, recovered.apply_id),
        )
        if told.fetchone() is None:
            tx.event(_UNDONE, body, at=at, plan=plan_id)

    store.write(write)


def plan_and_commit(note: bytes) -> tuple[str | None, str | None]:
    """Return which plan an apply was of, and the commit that was made for it."""
    if not note:
        return None, None
    _, plan_id, *_, body, _ = json.loads(note)
    return plan_id, json.loads(body).get("commit")


def level_after(done: Sequence[Applied], base: str) -> Level:
    """Return how much of a plan is in the user's tree after all that was done."""
    return done[-1].level if done else Level(base)


def standing(done: Sequence[Applied]) -> tuple[Applied, ...]:
    """Return each apply whose last word is not a revert, as the record that a revert would name."""
    first: dict[str, str] = {}  # of each record, the apply that it is about in the end
    last: dict[str, Applied] = {}
    gone: dict[str, bool] = {}
    for one in done:
        about = one.id if one.of_apply is None else first[one.of_apply]
        first[one.id] = about
        # What was put back stands again, as the last that was done.
        last.pop(about, None)
        last[about] = one
        gone[about] = one.kind == "revert" if one.of_apply is None else not gone[about]
    return tuple(one for about, one in last.items() if not gone[about])


def _applied(row: Sequence[Any]) -> Applied:
    apply_id, plan_id, kind, of_apply, before, after, level, body, at = row
    told = json.loads(body)
    return Applied(
        id=apply_id,
        plan_id=plan_id,
        kind=kind,
        of_apply=of_apply,
        before=before,
        after=after,
        level=Level(level, frozenset(told["changesets"])),
        actors=tuple(told["actors"]),
        paths=tuple(told["paths"]),
        files=told["files"],
        at=at,
        commit=told.get("commit"),
    )
