"""A plan's merged changes on their way into the user's tree, and back."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cleveragents.domain.changeset import FileMode
from cleveragents.domain.changeset_rules import short_id
from cleveragents.domain.errors import ConflictError, PlanError, RequestError
from cleveragents.domain.paths import folders_of
from cleveragents.infrastructure.apply.survey import signatures
from cleveragents.infrastructure.apply.target import Target
from cleveragents.infrastructure.apply.tree_apply import TreeApply
from cleveragents.infrastructure.changes import apply_rows as rows
from cleveragents.infrastructure.changes.apply_rows import PAST, Applied
from cleveragents.infrastructure.changes.merge_rows import unknown
from cleveragents.infrastructure.changes.selection import (
    EVERYTHING,
    Level,
    decided,
    merge_over,
    next_level,
    shown,
)
from cleveragents.infrastructure.git.merge import clashing_lines
from cleveragents.infrastructure.git.user_repository import UserRepository
from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from cleveragents.domain.conflict import Lines
    from cleveragents.infrastructure.apply.target import Recovered, Signature
    from cleveragents.infrastructure.changes.selection import Selection
    from cleveragents.infrastructure.git.merge import Clash
    from cleveragents.infrastructure.git.repository import GitRepository, TreeChange
    from cleveragents.infrastructure.store import Store

#: Whose version is taken where the user and the plan changed the same place.
TAKE: Final = ("mine", "plan")

# How often a tree that is edited while we look is looked at again.
_LOOKS_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What is asked for: to apply a part of a plan, or to revert an apply."""

    plan_id: str
    kind: str
    of_apply: str | None = None
    actors: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    take: str | None = None
    #: How much of the plan will be in the user's tree.
    level: Level
    #: The last apply or revert of the plan when this was worked out.
    last: str | None

    @property
    def command(self) -> str:
        """The command that asks for it, without `--take`."""
        words = ["cleveragents", "changes", self.kind, self.of_apply or self.plan_id]
        if self.kind == "apply":
            for flag, names in (("--actor", self.actors), ("--path", self.paths)):
                words += [f"{flag}={plain(name)}" for name in names]
        return shlex.join(words)


@dataclass(frozen=True, slots=True)
class Prospect:
    """What an errand would do to the user's tree as it stands: from one commit to another."""

    errand: Errand
    before: str
    after: str
    changes: tuple[TreeChange, ...]
    #: What was seen at the path of each change.
    seen: tuple[Signature | None, ...]
    #: All that was asked for is applied already.
    idle: bool


class PlanApply:
    """Puts a plan's changes into the user's tree, all or nothing, and takes them back.

    The user's own edits are merged; where they overlap nothing is applied and the place is told.
    Any number of threads and processes may ask: one apply runs at a time, and one that was worked
    out before another of its plan came first is refused with CA4104.
    """

    def __init__(
        self, store: Store, repository: GitRepository, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._repository = repository
        self._engine = TreeApply(repository.root, repository.home, on_recovered=self._recovered)
        self._clock = clock

    # -- looking ---------------------------------------------------------------------------

    def prospect(
        self, plan_id: str, selection: Selection = EVERYTHING, *, take: str | None = None
    ) -> Prospect:
        """Say what applying would do now; ConflictError CA4102 where the user is in its way."""
        self.recover()
        # In one read: a level that is newer than the plan's tree would be taken back.
        with self._store.read() as connection:
            plan, done = rows.plan_state(connection, plan_id)
        level = rows.level_after(done, plan.tree.base)
        wanted = next_level(self._repository, plan, level, selection)
        errand = Errand(
            plan_id=plan_id,
            kind="apply",
            actors=selection.actors,
            paths=selection.paths,
            take=take,
            level=wanted,
            last=_last(done),
        )
        return self._prospect(errand, level.commit, wanted.commit)

    def revert_prospect(self, apply_id: str, *, take: str | None = None) -> Prospect:
        """Say what taking an apply back would do now; CA4103 where later edits overlap it."""
        self.recover()
        plan_id = self.applied(apply_id).plan_id
        with self._store.read() as connection:
            plan, done = rows.plan_state(connection, plan_id)
        target = _in_force(done, apply_id)
        errand = Errand(
            plan_id=plan_id,
            kind="revert",
            of_apply=target.id,
            actors=target.actors,
            paths=target.paths,
            take=take,
            level=self._level_without(target, done, plan.tree.base),
            last=_last(done),
        )
        return self._prospect(errand, target.after, target.before)

    def level(self, plan_id: str) -> Level:
        """Return how much of a plan is in the user's tree."""
        with self._store.read() as connection:
            plan, done = rows.plan_state(connection, plan_id)
        return rows.level_after(done, plan.tree.base)

    def applies(self, plan_id: str | None = None) -> tuple[Applied, ...]:
        """Return what was applied and reverted, oldest first."""
        with self._store.read() as connection:
            return rows.apply_rows(connection, plan_id)

    def applied(self, apply_id: str) -> Applied:
        """Return one apply by its id."""
        for one in self.applies():
            if one.id == apply_id:
                return one
        raise unknown("Apply", apply_id, "Run `cleveragents changes show` to see the plans")

    def last_standing(self, plan_id: str) -> Applied:
        """Return what to revert to take the plan's last apply that still stands back."""
        with self._store.read() as connection:
            _, done = rows.plan_state(connection, plan_id)
        standing = rows.standing(done)
        if not standing:
            raise PlanError(
                f"Nothing of plan `{plan_id}` is applied",
                code="CA4108",
                facts={"plan": plan_id},
                hint=f"Run `{shlex.join(['cleveragents', 'changes', 'apply', plan_id])}`",
            )
        return standing[-1]

    def standing(self, plan_id: str) -> tuple[Applied, ...]:
        """Return the applies of a plan that were not taken back, or were put back since."""
        return rows.standing(self.applies(plan_id))

    # -- doing -----------------------------------------------------------------------------

    def apply(
        self, plan_id: str, selection: Selection = EVERYTHING, *, take: str | None = None
    ) -> Applied | None:
        """Apply the selected changes of a plan; None when they are applied already."""
        return self.carry_out(self.prospect(plan_id, selection, take=take))

    def revert(self, apply_id: str, *, take: str | None = None) -> Applied | None:
        """Take an apply back, or a revert: what was edited since elsewhere stays."""
        return self.carry_out(self.revert_prospect(apply_id, take=take))

    def carry_out(self, prospect: Prospect, *, commit: str | None = None) -> Applied | None:
        """Do what was looked at; refused, with nothing changed, when anything changed since.

        `commit` is kept with it: what HEAD shall be once the tree is new.
        """
        if prospect.idle:
            return None
        errand = prospect.errand
        applied = Applied(
            id=f"a-{short_id()}",
            plan_id=errand.plan_id,
            kind=errand.kind,
            of_apply=errand.of_apply,
            before=prospect.before,
            after=prospect.after,
            level=errand.level,
            actors=errand.actors,
            paths=tuple(map(plain, errand.paths)),
            files=len(prospect.changes),
            at=self._clock(),
            commit=commit,
        )
        note = rows.note_of(applied)
        done = self._engine.apply(
            applied.id,
            self._targets(prospect),
            note=note,
            on_flipped=lambda: rows.record(self._store, note),
        )
        return replace(applied, rescued=done.rescued)

    def recover(self) -> tuple[Recovered, ...]:
        """Finish, or take back, what a process left half-done when it died.

        What cannot be followed is `left`: it is told, and refuses the next apply.
        """
        return self._engine.recover()

    def _refuse_if_outdated(self, errand: Errand) -> None:
        if _last(self.applies(errand.plan_id)) != errand.last:
            raise PlanError(
                f"Another apply of plan `{errand.plan_id}` came first; nothing was changed",
                code="CA4104",
                facts={"plan": errand.plan_id},
                hint="Repeat the command: it then goes on from what was applied",
            )

    def _targets(self, prospect: Prospect) -> Iterator[Target]:
        # They are taken while the tree is ours alone: of two that looked at once, one counts.
        self._refuse_if_outdated(prospect.errand)
        oids = [change.new.oid for change in prospect.changes if change.new]
        contents = self._repository.read(oids)
        for change, seen in zip(prospect.changes, prospect.seen, strict=True):
            if change.new is None:
                yield Target(change.path, None, None, seen)
            else:
                yield Target(change.path, next(contents), FileMode(change.new.mode), seen)

    def _recovered(self, recovered: Recovered) -> None:
        rows.record_recovered(self._store, recovered, self._clock())

    # -- comparing -------------------------------------------------------------------------

    def _prospect(self, errand: Errand, base: str, wanted: str) -> Prospect:
        if errand.take is not None and errand.take not in TAKE:
            raise RequestError(f"`take` must be `mine` or `plan`, got {errand.take!r}")
        user = self._repository.snapshot(base)
        for _ in range(_LOOKS_MAX):
            after = self._merged(errand, base, user, wanted)
            changes = self._repository.changes(user, after)
            seen = signatures(self._repository.root, (change.path for change in changes))
            # Seen between two looks that agree: what was seen is what was merged.
            again = self._repository.snapshot(base)
            if self._repository.tree_of(again) == self._repository.tree_of(user):
                _refuse_strangers(changes, seen)
                _refuse_others(self._repository.root, changes)
                idle = errand.kind == "apply" and base == wanted
                return Prospect(errand, user, after, changes, seen, idle)
            user = again
        raise PlanError(
            "The tree is being edited faster than it can be compared; nothing was changed",
            code="CA4108",
            hint="Wait until it is quiet, then try again",
        )

    def _merged(self, errand: Errand, base: str, user: str, wanted: str) -> str:
        if self._repository.tree_of(user) == self._repository.tree_of(base):
            return wanted
        merged = merge_over(self._repository, base, user, wanted)
        if merged.clashes and errand.take is None:
            # What another apply of the plan has just put there is not the user's edit.
            self._refuse_if_outdated(errand)
            raise self._in_the_way(errand, merged.clashes)
        return decided(self._repository, merged, user, ours=errand.take == "mine")

    def _level_without(self, one: Applied, done: Sequence[Applied], base: str) -> Level:
        """Return the plan's level once an apply is taken back, also one that is not the last."""
        before = rows.level_after(done[: done.index(one)], base)
        now = done[-1].level
        if now == one.level:
            return before
        merged = merge_over(self._repository, one.level.commit, now.commit, before.commit)
        # What came later and builds on it goes with it: it can be applied again.
        commit = decided(self._repository, merged, now.commit, ours=False)
        came, went = one.level.changesets, before.changesets
        return Level(commit, now.changesets - (came - went) | (went - came))

    def _in_the_way(self, errand: Errand, clashes: tuple[Clash, ...]) -> ConflictError:
        places = {
            shown(clash.path).strip("`"): _told(clash, *clashing_lines(self._repository, clash))
            for clash in clashes
        }
        where = shown(clashes[0].path) if len(clashes) == 1 else f"{len(clashes)} files"
        if errand.kind == "apply":
            what = f"You and plan `{errand.plan_id}` changed the same place in {where}"
        else:
            what = f"Apply `{errand.of_apply}` was edited in the same place since, in {where}"
        other = "the plan's" if errand.kind == "apply" else "the one that it goes back to"
        return ConflictError(
            f"{what}; nothing was {PAST[errand.kind]}",
            code="CA4102" if errand.kind == "apply" else "CA4103",
            facts=places,
            hint=f"Run `{errand.command} --take mine` to keep your version there,"
            f" or `{errand.command} --take plan` to take {other}",
        )


def _last(done: Sequence[Applied]) -> str | None:
    return done[-1].id if done else None


def _in_force(done: Sequence[Applied], apply_id: str) -> Applied:
    """Return the record that put an apply where it is now: itself, or the last that redid it."""
    backs = {one.of_apply: one for one in done}
    chain = [next(one for one in done if one.id == apply_id)]
    while (back := backs.get(chain[-1].id)) is not None:
        chain.append(back)
    if len(chain) % 2 == 0:
        raise PlanError(
            f"Apply `{apply_id}` is taken back already",
            code="CA4108",
            facts={"apply": apply_id, "taken back by": chain[-1].id},
            hint=f"Run `cleveragents changes revert {chain[-1].id}` to put it back",
        )
    return chain[-1]


def _refuse_strangers(changes: tuple[TreeChange, ...], seen: tuple[Signature | None, ...]) -> None:
    """Refuse to write over a file that is ignored, and so no part of what was merged."""
    for change, there in zip(changes, seen, strict=True):
        if change.old is None and there is not None:
            raise ConflictError(
                f"The plan makes {shown(change.path)}, but an ignored file is there;"
                " nothing was changed",
                code="CA4102",
                facts={"path": shown(change.path).strip("`")},
                hint="Move the file away, then apply again",
            )


def _refuse_others(root: Path, changes: tuple[TreeChange, ...]) -> None:
    """Refuse to write into another repository, which may have come after the plan's changes."""
    ways = {one.path: [*folders_of(one.path), one.path] for one in changes if one.old is None}
    others = UserRepository(root).others(place for way in ways.values() for place in way)
    for path, way in ways.items():
        for place in others.intersection(way):
            raise PlanError(
                f"{shown(place)} is a repository of its own by now, and the plan makes"
                f" {shown(path)} in it; nothing was changed",
                code="CA4108",
                facts={"repository": shown(place).strip("`"), "path": shown(path).strip("`")},
                hint="Move the repository away, or apply the other files with `--path`",
            )


def _told(clash: Clash, mine: tuple[Lines, ...], theirs: tuple[Lines, ...]) -> str:
    """Say where the two versions of a file lie in each other's way."""
    if clash.ours is None:
        return f"you deleted or renamed it ({clash.kind})"
    if clash.theirs is None:
        return f"deleted or renamed there ({clash.kind})"
    if not mine or not theirs:
        return clash.kind
    return f"your {_lines(mine)}, the other's {_lines(theirs)}"


def _lines(places: tuple[Lines, ...]) -> str:
    told = ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in places)
    return f"{'line' if told.isdigit() else 'lines'} {told}"
