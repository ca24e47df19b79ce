"""Undo: take back what came into the user's tree last, or one actor's part of a plan."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cleveragents.domain.errors import ConflictError, PlanError
from cleveragents.infrastructure.changes import apply_rows as rows
from cleveragents.infrastructure.changes.merge_rows import unknown
from cleveragents.infrastructure.changes.plan_apply import Errand, PlanApply
from cleveragents.infrastructure.changes.selection import Level, merge_over
from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    from cleveragents.infrastructure.changes.apply_rows import Applied
    from cleveragents.infrastructure.changes.merge_rows import MergeRow
    from cleveragents.infrastructure.changes.plan_apply import Prospect
    from cleveragents.infrastructure.changes.selection import PlanState
    from cleveragents.infrastructure.git.merge import Clash


@dataclass(frozen=True, slots=True, kw_only=True)
class PartErrand(Errand):
    """A revert of what one actor did in a plan, over however many applies it came."""

    @property
    def command(self) -> str:
        """The command that asks for it, without `--take`."""
        (actor,) = self.actors
        return shlex.join(["cleveragents", "undo", self.plan_id, f"--actor={plain(actor)}"])


class Undo(PlanApply):
    """Takes back the last apply of a tree or of a plan, or one actor's part of a plan.

    What it does is one more apply on record, with every promise of `PlanApply`:
    all or nothing, merged with later edits, and itself to be taken back by its id.
    """

    def last(self, plan_id: str | None = None) -> Applied:
        """Return what came into the tree last and still stands, of any plan or of this one."""
        with self._store.read() as connection:
            if plan_id is not None:
                rows.plan_state(connection, plan_id)
            done = rows.apply_rows(connection, plan_id)
        # A part that was taken out stands too, but nothing came into the tree by it.
        there = [one for one in rows.standing(done) if not _is_part(one)]
        if not there:
            raise nothing_there(plan_id)
        return there[-1]

    def puts_back(self, one: Applied) -> bool:
        """Say whether something came into the tree by it: a revert is the opposite of its own."""
        known = {other.id: other for other in self.applies(one.plan_id)}
        turns = 0
        while one.of_apply is not None:
            one, turns = known[one.of_apply], turns + 1
        return (one.kind == "apply") == (turns % 2 == 0)

    def part_prospect(self, plan_id: str, actor: str, *, take: str | None = None) -> Prospect:
        """Say what taking out the part of an actor, or of a node, would do to the tree now.

        CA4108 when changes of others build on it, CA4103 where later edits overlap it.
        """
        self.recover()
        with self._store.read() as connection:
            plan, done = rows.plan_state(connection, plan_id)
        level = rows.level_after(done, plan.tree.base)
        # Only an apply by paths brings parts of changesets.
        parts = any(one.paths for one in done)
        theirs = [
            row for row in _rows_of(plan, actor) if parts or row.changeset_id in level.changesets
        ]
        wanted = self._level_without_rows(plan, level, theirs)
        if wanted.commit == level.commit:
            raise PlanError(
                f"Nothing of {actor!r} in plan `{plan_id}` is in the tree",
                code="CA4108",
                facts={"plan": plan_id, "actor": actor},
                hint=f"Run `{shlex.join(['cleveragents', 'changes', 'show', plan_id])}`",
            )
        errand = PartErrand(
            plan_id=plan_id,
            kind="revert",
            actors=(actor,),
            take=take,
            level=wanted,
            last=done[-1].id if done else None,
        )
        return self._prospect(errand, level.commit, wanted.commit)

    def _level_without_rows(self, plan: PlanState, level: Level, theirs: list[MergeRow]) -> Level:
        """Take changesets out of a level, the last first; CA4108 if others build on one."""
        heads = [plan.tree.base, *(row.head or "" for row in plan.merged)]
        before = {row.changeset_id: head for row, head in zip(plan.merged, heads, strict=False)}
        commit = level.commit
        for row in reversed(theirs):
            merged = merge_over(self._repository, row.head or "", commit, before[row.changeset_id])
            if merged.clashes:
                raise self._built_upon(plan, row, theirs, merged.clashes)
            commit = self._repository.commit_tree(merged.tree, level.commit)
        if self._repository.tree_of(commit) == self._repository.tree_of(level.commit):
            commit = level.commit
        return Level(commit, level.changesets - {row.changeset_id for row in theirs})

    def _built_upon(
        self, plan: PlanState, row: MergeRow, theirs: list[MergeRow], clashes: tuple[Clash, ...]
    ) -> PlanError:
        paths = {clash.path for clash in clashes}
        later = [one for one in plan.merged if (one.merged or 0) > (row.merged or 0)]
        others = {
            _name(one): None
            for one in later
            if one not in theirs
            and not paths.isdisjoint(
                change.path for change in self._repository.changes(one.start, one.theirs)
            )
        }
        who = ", ".join(f"`{plain(name)}`" for name in others) or "another actor"
        return PlanError(
            f"Changes of {who} build on those of {_name(row)!r}; nothing was reverted",
            code="CA4108",
            facts={"changeset": row.changeset_id, "paths": ", ".join(map(plain, sorted(paths)))},
            hint="Take those back first, or the whole plan:"
            f" `{shlex.join(['cleveragents', 'undo', plan.plan_id])}`",
        )

    def _in_the_way(self, errand: Errand, clashes: tuple[Clash, ...]) -> ConflictError:
        error = super()._in_the_way(errand, clashes)
        if not isinstance(errand, PartErrand):
            return error
        (actor,) = errand.actors
        where = "1 file" if len(clashes) == 1 else f"{len(clashes)} files"
        return ConflictError(
            f"What {actor!r} changed was edited in the same place since, in {where};"
            " nothing was reverted",
            code=error.code,
            facts=error.facts,
            hint=error.hint,
        )


def nothing_there(plan_id: str | None = None) -> PlanError:
    """Return the refusal of an undo where nothing is applied."""
    of_plan = "any plan" if plan_id is None else f"plan `{plan_id}`"
    return PlanError(
        f"Nothing of {of_plan} is in the tree: there is nothing to take back",
        code="CA4108",
        facts={} if plan_id is None else {"plan": plan_id},
        hint="Run `cleveragents changes show` to see what can be applied",
    )


def _is_part(one: Applied) -> bool:
    return one.kind == "revert" and one.of_apply is None


def _rows_of(plan: PlanState, actor: str) -> list[MergeRow]:
    """Return an actor's or a node's changesets in the order in which they were merged."""
    found = [row for row in plan.merged if actor in {row.actor, row.node}]
    if not found:
        show = shlex.join(["cleveragents", "changes", "show", plan.plan_id])
        raise unknown("Actor", actor, f"Run `{show}` to see who worked on it")
    return found


def _name(row: MergeRow) -> str:
    return row.actor or row.node or row.changeset_id
