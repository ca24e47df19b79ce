"""`cleveragents changes show|diff|conflicts|resolve`: what plans did, and what needs a choice."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleveragents.cli import output, state
from cleveragents.cli.cautions import Cautions
from cleveragents.cli.table import one_line, table
from cleveragents.domain.budget import zone_of
from cleveragents.domain.conflict import ConflictState
from cleveragents.domain.errors import ConflictError, RequestError, StoreError
from cleveragents.infrastructure.changes.difference import Difference
from cleveragents.infrastructure.changes.merge_rows import unknown
from cleveragents.infrastructure.changes.selection import Selection, file_counts, on_paths, shown
from cleveragents.infrastructure.stored_text import plain
from cleveragents.settings import load
from cleveragents.workspace import PlanChanges

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from cleveragents.domain.conflict import Conflict, Side
    from cleveragents.infrastructure.changes.apply_rows import Applied
    from cleveragents.infrastructure.changes.merge_rows import MergeRow
    from cleveragents.infrastructure.store import Store

_STATES = ("merged", "conflicted", "sealed", "rejected")
_SEE_ALL = "Run `cleveragents changes show` to see which there are"


@contextmanager
def opened() -> Iterator[PlanChanges | None]:
    """Give what plans did to the tree around here, or None when no plan was ever begun."""
    if not state.is_there():
        yield None
        return
    try:
        with state.writing() as store:
            yield PlanChanges(state.root(), store) if _plans(store) else None
    except OSError as error:
        raise StoreError(
            f"The folder of CleverAgents cannot be used: {error.strerror}",
            code="CA6007",
            facts={"path": error.filename},
            hint="See to the cause, then repeat the command",
        ) from error


@contextmanager
def opened_for(what: str, name: str) -> Iterator[PlanChanges]:
    """Give what plans did, to a command that names a part of it; CA4107 when there is nothing."""
    with opened() as changes:
        if changes is None:
            raise unknown(what, name, _SEE_ALL)
        yield changes


def selection_of(options: Namespace) -> Selection:
    """Return the part of a plan's changes that was asked for."""
    return Selection(actors=tuple(options.actor or ()), paths=tuple(options.path or ()))


def counted(number: int, noun: str) -> str:
    """Return `1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def show(options: Namespace) -> int:
    """Print the plans, or of one plan its changesets, conflicts and applies."""
    if options.plan is not None:
        plan = plain(options.plan)
        with opened_for("Plan", plan) as changes:
            changes.trees.tree_of(plan)
            _show_plan(changes, plan, as_json=options.json)
        return 0
    with opened() as changes:
        if changes is not None:
            _show_plans(changes, as_json=options.json)
            return 0
    return state.nothing("No plans with changes yet", "Run a plan, then look again")


def diff(options: Namespace) -> int:
    """Print what a plan changed, or a part of it."""
    plan = plain(options.plan)
    with opened_for("Plan", plan) as changes:
        found = _difference(changes, plan, options)
        records = found.records()
        if not records:
            output.talk(f"Plan `{one_line(plan)}` changed nothing here")
        elif options.json:
            for record in records:
                output.record(record)
        elif options.stat:
            output.raw(found.summary(color=_wants_color(options.color)))
        else:
            color = _wants_color(options.color)
            # What is piped may be fed to `git apply`.
            output.raw(found.patch(color=color, binary=not color and not sys.stdout.isatty()))
    return 0


def show_conflicts(options: Namespace) -> int:
    """Print the conflicts that somebody must decide; those that are over only as records."""
    plan = None if options.plan is None else plain(options.plan)
    with opened() as changes:
        if plan is not None:
            if changes is None:
                raise unknown("Plan", plan, _SEE_ALL)
            changes.trees.tree_of(plan)
        found = () if changes is None else changes.trees.conflicts(plan)
    waiting = [one for one in found if one.state == ConflictState.OPEN]
    if options.json:
        for conflict in found:
            output.record(conflict_record(conflict))
    for conflict in () if options.json else waiting:
        output.data(told(conflict))
    if waiting:
        return ConflictError.exit_code
    return state.nothing("No conflicts", "Run `cleveragents changes show` to see all changes")


def resolve(options: Namespace) -> int:
    """Take a side, or a file's content; merge once every conflict of the changeset is chosen."""
    if (options.take is None) == (options.content is None):
        raise RequestError(
            "`changes resolve` needs one of `--take ours`, `--take theirs` and `--with FILE`"
        )
    take = options.take if options.content is None else _content(options.content)
    conflict_id = plain(options.conflict)
    with opened_for("Conflict", conflict_id) as changes:
        outcome = changes.trees.resolve(conflict_id, take)
    still = outcome.conflicts
    if options.json:
        ids = [conflict.id for conflict in still]
        merge = {"kind": "merge", "changeset": outcome.changeset_id, "state": outcome.state}
        output.record({**merge, "open_conflicts": ids})
    elif still:
        output.talk(f"Chosen; {counted(len(still), 'conflict')} of this changeset to go:")
        for conflict in still:
            output.talk(told(conflict))
    else:
        output.talk(f"Merged changeset `{outcome.changeset_id}` into its plan's tree")
    return ConflictError.exit_code if still else 0


def told(conflict: Conflict) -> str:
    """Return a conflict as people read it."""
    take = f"cleveragents changes resolve {conflict.id} --take"
    facts = {
        "ours": conflict.ours,
        "theirs": conflict.theirs,
        "plan": one_line(conflict.plan_id),
        "decide": f"{take} ours",
        "or": f"{take} theirs",
    }
    path = shown(conflict.path).strip("`")
    return f"{conflict.id}  {path}  ({conflict.kind})\n{output.facts(facts)}"


def conflict_record(conflict: Conflict) -> dict[str, Any]:
    """Return a conflict as `--json` shows it."""
    return {
        "kind": "conflict",
        "id": conflict.id,
        "plan": conflict.plan_id,
        "path": plain(conflict.path),
        "what": conflict.kind,
        "state": conflict.state,
        "choice": conflict.choice,
        **{name: _side(getattr(conflict, name)) for name in ("base", "ours", "theirs")},
    }


def apply_record(one: Applied) -> dict[str, Any]:
    """Return an apply or a revert as `--json` shows it."""
    return {
        "kind": one.kind,
        "id": one.id,
        "of": one.of_apply,
        "plan": one.plan_id,
        "files": one.files,
        "actors": one.actors,
        "paths": one.paths,
        "at": one.at,
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "changeset": side.changeset,
        "actor": side.actor,
        "node": side.node,
        "content": side.content_id,
        "lines": side.lines,
    }


def _content(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:
        raise RequestError(f"`--with` must name a file to read, got {name!r}: {error}") from None


def _wants_color(when: str) -> bool:
    on_terminal = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return when == "always" or (when == "auto" and on_terminal)


def _difference(changes: PlanChanges, plan: str, options: Namespace) -> Difference:
    selection = selection_of(options)
    if options.changeset is None:
        return changes.difference(plan, selection)
    if selection.actors:
        raise RequestError("`--changeset` and `--actor` exclude each other: choose one")
    changes.trees.tree_of(plan)
    for row in changes.trees.merges(plan):
        if row.changeset_id == options.changeset:
            new = on_paths(changes.repository, row.start, row.theirs, selection)
            return Difference(changes.repository, row.start, new)
    hint = f"Run `{shlex.join(['cleveragents', 'changes', 'show', plan])}` to see them"
    raise unknown("Sealed changeset", options.changeset, hint)


def _plans(store: Store) -> tuple[str, ...]:
    with store.read() as connection:
        found = connection.execute("SELECT plan FROM plan_trees ORDER BY plan").fetchall()
    return tuple(plan for (plan,) in found)


def _show_plans(changes: PlanChanges, *, as_json: bool) -> None:
    rows = []
    for plan in _plans(changes.store):
        merges = changes.trees.merges(plan)
        states = {word: sum(row.state == word for row in merges) for word in _STATES}
        standing = changes.applies.standing(plan)
        applied = standing[-1].id if standing else "no"
        if as_json:
            output.record({"kind": "plan", "plan": plan, **states, "applied": applied})
        else:
            rows.append((plan, *map(str, states.values()), applied))
    if rows:
        output.data(table(("plan", *_STATES, "applied"), rows, right=_STATES))


def _show_plan(changes: PlanChanges, plan: str, *, as_json: bool) -> None:
    merges, applies = changes.trees.merges(plan), changes.applies.applies(plan)
    counts = file_counts(changes.repository, merges)
    cautions = Cautions.of(changes, plan)
    if as_json:
        for row, files in zip(merges, counts, strict=True):
            output.record(_merge_record(row, files))
        for one in applies:
            output.record(apply_record(one))
        for caution in cautions.records():
            output.record(caution)
        return
    rows = [
        (row.changeset_id, row.actor or "-", row.node or "-", row.state, str(files))
        for row, files in zip(merges, counts, strict=True)
    ]
    output.data(table(("changeset", "actor", "node", "state", "files"), rows, right=("files",)))
    zone = zone_of(load()[0].zone)
    for one in applies:
        of = "" if one.of_apply is None else f" of {one.of_apply}"
        when = f"{datetime.fromtimestamp(one.at, zone):%Y-%m-%d %H:%M:%S}"
        output.data(f"{one.kind} {one.id}{of}: {counted(one.files, 'file')}, {when}")
    cautions.tell()


def _merge_record(row: MergeRow, files: int) -> dict[str, Any]:
    return {
        "kind": "changeset",
        "id": row.changeset_id,
        "plan": row.plan_id,
        "actor": row.actor,
        "node": row.node,
        "attempt": row.attempt,
        "state": row.state,
        "files": files,
    }
