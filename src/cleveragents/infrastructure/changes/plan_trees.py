"""The tree of each plan: where it began, and how sealed changesets are merged into it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cleveragents.domain.changeset import FileMode
from cleveragents.domain.changeset_rules import short_id
from cleveragents.domain.conflict import Conflict, ConflictState, MergeOutcome, Side
from cleveragents.domain.errors import PlanError, RequestError
from cleveragents.infrastructure.changes import merge_rows as rows
from cleveragents.infrastructure.changes.turns import Turns
from cleveragents.infrastructure.git.merge import Clash, clashing_lines, merge
from cleveragents.infrastructure.git.repository import Blob, Write
from cleveragents.infrastructure.stored_text import check_plan_id, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cleveragents.domain.conflict import Lines
    from cleveragents.infrastructure.changes.merge_rows import LeftOut, MergeRow
    from cleveragents.infrastructure.git.repository import GitRepository
    from cleveragents.infrastructure.sandbox.sandbox import PlanTree
    from cleveragents.infrastructure.store import Store
    from cleveragents.infrastructure.transaction import Transaction

TAKE: Final = ("ours", "theirs")


class PlanTrees:
    """Merges changesets into the tree of their plan; exact for any number of threads and processes.

    A merge is worked out outside of any lock, against the tree as it was seen; it counts only if
    the tree is still that one in the transaction that records it, else it is worked out anew.
    A changeset goes in whole or not at all: one with a conflict leaves the tree as it is.
    """

    def __init__(
        self,
        store: Store,
        repository: GitRepository,
        *,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = short_id,
    ) -> None:
        self._store = store
        self._repository = repository
        self._clock = clock
        self._new_id = new_id
        self._turns = Turns()

    # -- where a plan stands ---------------------------------------------------------------

    def begin(self, plan_id: str) -> PlanTree:
        """Return the plan's tree; the first caller makes it from the user's tree as it stands."""
        check_plan_id(plan_id)
        with self._store.read() as connection:
            known = connection.execute("SELECT 1 FROM plan_trees WHERE plan = ?", (plan_id,))
            if known.fetchone() is not None:
                return rows.tree_row(connection, plan_id)
        base, at = self._repository.snapshot(), self._clock()

        def write(tx: Transaction) -> PlanTree:
            added = tx.execute(
                "INSERT INTO plan_trees VALUES (?, ?, ?) ON CONFLICT (plan) DO NOTHING",
                (plan_id, base, base),
            )
            if added.rowcount:
                tx.event("plan.tree", {"base": base}, at=at, plan=plan_id)
            return rows.tree_row(tx, plan_id)

        return self._store.write(write)

    def tree_of(self, plan_id: str) -> PlanTree:
        """Return where the tree of a plan stands; CA4107 when it has none."""
        with self._store.read() as connection:
            return rows.tree_row(connection, plan_id)

    def merges(self, plan_id: str) -> tuple[MergeRow, ...]:
        """Return what became of each sealed changeset of a plan, in the order of their sealing."""
        with self._store.read() as connection:
            return rows.merge_rows(connection, plan_id)

    def conflicts(self, plan_id: str | None = None) -> tuple[Conflict, ...]:
        """Return every conflict of a plan, or of all, in the order in which they were found."""
        with self._store.read() as connection:
            return rows.conflict_rows(connection, plan_id=plan_id)

    def conflict(self, conflict_id: str) -> Conflict:
        """Return one conflict by its id."""
        with self._store.read() as connection:
            return rows.conflict_row(connection, conflict_id)

    # -- merging ---------------------------------------------------------------------------

    def seal(
        self,
        plan_id: str,
        changeset_id: str,
        start: str,
        theirs: str,
        left_out: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Hand in what an attempt made of what it started from; the same twice is once.

        What could not be taken is told beside it, by its path, with the reason.
        """
        at = self._clock()

        def write(tx: Transaction) -> None:
            rows.tree_row(tx, plan_id)
            rows.check_of_plan(tx, changeset_id, plan_id)
            added = tx.execute(
                "INSERT INTO merges (changeset, plan, start, theirs, state)"
                " VALUES (?, ?, ?, ?, 'sealed') ON CONFLICT (changeset) DO NOTHING",
                (changeset_id, plan_id, start, theirs),
            )
            if added.rowcount:
                body = {"changeset": changeset_id, "start": start, "theirs": theirs}
                tx.event("changeset.sealed", body, at=at, plan=plan_id)
                for path, reason in left_out.items():
                    body = {"changeset": changeset_id, "path": plain(path), "reason": plain(reason)}
                    tx.event(rows.LEFT_OUT, body, at=at, plan=plan_id)

        self._store.write(write)

    def left_out(self, changeset_id: str) -> dict[str, str]:
        """Return the paths that a sealed changeset could not take, each with the reason."""
        with self._store.read() as connection:
            return rows.left_out_rows(connection, changeset_id)

    def left_out_of(self, plan_id: str) -> tuple[LeftOut, ...]:
        """Return the paths that changesets of a plan could not take, unless they are rejected."""
        with self._store.read() as connection:
            return rows.left_out_of_plan(connection, plan_id)

    def is_sealed(self, changeset_id: str) -> bool:
        """Tell whether a changeset was handed in, whatever became of it since."""
        with self._store.read() as connection:
            return rows.is_sealed(connection, changeset_id)

    def merge(self, changeset_id: str) -> MergeOutcome:
        """Merge a sealed changeset into its plan's tree, or tell what is in its way.

        Merging again what is merged changes nothing; what was in conflict is tried anew.
        """
        with self._store.read() as connection:
            plan_id = rows.merge_row(connection, changeset_id).plan_id
        # Merges worked out at once could not all count, and would be worked out again.
        with self._turns.of(plan_id):
            while True:
                outcome = self._merge(changeset_id)
                if outcome is not None:
                    return outcome

    def resolve(self, conflict_id: str, take: str | bytes) -> MergeOutcome:
        """Choose `ours`, `theirs` or a content for one conflict; merge once all are chosen."""
        if isinstance(take, str) and take not in TAKE:
            raise RequestError(f"`take` must be `ours`, `theirs` or a content, got {take!r}")
        choice = take if isinstance(take, str) else self._repository.keep(take)
        at = self._clock()

        def write(tx: Transaction) -> str:
            conflict = rows.conflict_row(tx, conflict_id)
            if conflict.state != ConflictState.OPEN:
                raise _not_open(conflict)
            rows.set_conflict(tx, conflict_id, ConflictState.RESOLVED, choice)
            body = {"conflict": conflict_id, "path": plain(conflict.path), "choice": choice}
            tx.event("conflict.resolved", body, at=at, plan=conflict.plan_id)
            return conflict.theirs.changeset or ""

        changeset_id = self._store.write(write)
        with self._store.read() as connection:
            row = rows.merge_row(connection, changeset_id)
            still = rows.conflict_rows(connection, changeset_id=changeset_id)
        still = tuple(one for one in still if one.state == ConflictState.OPEN)
        if still:
            return MergeOutcome(changeset_id, row.state, row.head or row.start, still)
        return self.merge(changeset_id)

    def reject(self, changeset_id: str) -> None:
        """Leave a changeset out for good, unless it is merged; what it did stays on record."""
        at = self._clock()

        def write(tx: Transaction) -> None:
            row = rows.merge_row(tx, changeset_id)
            if row.state == "merged":
                raise _over(changeset_id)
            if row.state == "rejected":
                return
            for conflict in rows.conflict_rows(tx, changeset_id=changeset_id):
                if conflict.state == ConflictState.OPEN:
                    rows.set_conflict(tx, conflict.id, ConflictState.GONE)
            tx.execute("UPDATE merges SET state = 'rejected' WHERE changeset = ?", (changeset_id,))
            tx.event("changeset.rejected", {"changeset": changeset_id}, at=at, plan=row.plan_id)

        self._store.write(write)

    def _merge(self, changeset_id: str) -> MergeOutcome | None:
        """Merge against what is seen now; None when that is not how things are any more."""
        with self._store.read() as connection:
            row = rows.merge_row(connection, changeset_id)
            head = rows.tree_row(connection, row.plan_id).head
            known = rows.conflict_rows(connection, changeset_id=changeset_id)
        if row.state == "merged":
            return MergeOutcome(changeset_id, row.state, row.head or head)
        if row.state == "rejected":
            raise _over(changeset_id)
        seen = _Seen(row, head, known)
        if head == row.start:
            return self._move(seen, row.theirs)
        merged = merge(self._repository, head, row.theirs)
        choices = {_key_of(one): one for one in known if one.state == ConflictState.RESOLVED}
        undecided = [clash for clash in merged.clashes if _key(clash) not in choices]
        if undecided:
            return self._hold(seen, undecided)
        result = self._repository.commit_tree(merged.tree, head, row.theirs)
        writes: dict[str, Write | None] = {}
        for clash in merged.clashes:
            writes |= _chosen(clash, choices[_key(clash)].choice)
        if writes:
            result = self._repository.commit(result, writes, by=row.actor or "cleveragents")
        return self._move(seen, result)

    def _move(self, seen: _Seen, result: str) -> MergeOutcome | None:
        at, row = self._clock(), seen.row

        def write(tx: Transaction) -> MergeOutcome | None:
            if not seen.is_still_so(tx):
                return None
            tx.execute("UPDATE plan_trees SET head = ? WHERE plan = ?", (result, row.plan_id))
            tx.execute(
                "UPDATE merges SET state = 'merged', head = ?, merged ="
                " (SELECT count(merged) + 1 FROM merges WHERE plan = ?) WHERE changeset = ?",
                (result, row.plan_id, row.changeset_id),
            )
            body = {"changeset": row.changeset_id, "from": seen.head, "to": result}
            tx.event("changeset.merged", body, at=at, plan=row.plan_id, actor=row.actor)
            return MergeOutcome(row.changeset_id, "merged", result)

        return self._store.write(write)

    def _hold(self, seen: _Seen, clashes: list[Clash]) -> MergeOutcome | None:
        """Keep what is in the way as conflicts; one that is open already stays the same one."""
        at, row = self._clock(), seen.row
        with self._store.read() as connection:
            writers = rows.last_writers(connection, row, [clash.path for clash in clashes])
        asked = {_key_of(one): one for one in seen.known if one.state == ConflictState.OPEN}
        found = tuple(
            asked.get(_key(clash)) or self._conflict(row, clash, writers.get(clash.path))
            for clash in clashes
        )
        fresh = [one for one in found if one not in seen.known]

        def write(tx: Transaction) -> MergeOutcome | None:
            if not seen.is_still_so(tx):
                return None
            for conflict in asked.values():
                if conflict not in found:
                    rows.set_conflict(tx, conflict.id, ConflictState.GONE)
            rows.add_conflicts(tx, row.changeset_id, fresh)
            tx.execute(
                "UPDATE merges SET state = 'conflicted', head = ? WHERE changeset = ?",
                (seen.head, row.changeset_id),
            )
            for conflict in fresh:
                body = {
                    "conflict": conflict.id,
                    "changeset": row.changeset_id,
                    "path": plain(conflict.path),
                    "with": conflict.ours.changeset,
                }
                tx.event("conflict.found", body, at=at, plan=row.plan_id, actor=row.actor)
            return MergeOutcome(row.changeset_id, "conflicted", seen.head, found)

        return self._store.write(write)

    def _conflict(self, row: MergeRow, clash: Clash, writer: Side | None) -> Conflict:
        ours, theirs = clashing_lines(self._repository, clash)
        later = Side(changeset=row.changeset_id, actor=row.actor, node=row.node)
        return Conflict(
            id=f"k-{self._new_id()}",
            plan_id=row.plan_id,
            path=clash.path,
            kind=clash.kind,
            base=_side(Side(), clash.base),
            ours=_side(writer or Side(), clash.ours, ours),
            theirs=_side(later, clash.theirs, theirs),
        )


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a merge was worked out against; only as long as it is so, the merge may count."""

    row: MergeRow
    head: str
    known: tuple[Conflict, ...]

    def is_still_so(self, tx: Transaction) -> bool:
        """Say whether nobody merged, rejected or chose anything meanwhile."""
        changeset_id = self.row.changeset_id
        return (
            rows.tree_row(tx, self.row.plan_id).head == self.head
            and rows.merge_row(tx, changeset_id) == self.row
            and rows.conflict_rows(tx, changeset_id=changeset_id) == self.known
        )


def _side(who: Side, blob: Blob | None, lines: tuple[Lines, ...] = ()) -> Side:
    if blob is None:
        return who
    return replace(who, mode=blob.mode, content_id=blob.oid, lines=lines)


def _key(clash: Clash) -> tuple[object, ...]:
    return clash.path, clash.base, clash.ours, clash.theirs


def _key_of(conflict: Conflict) -> tuple[object, ...]:
    sides = (conflict.base, conflict.ours, conflict.theirs)
    return (conflict.path, *(_blob_of(side) for side in sides))


def _blob_of(side: Side) -> Blob | None:
    if side.mode is None or side.content_id is None:
        return None
    return Blob(side.mode, side.content_id)


def _chosen(clash: Clash, choice: str | None) -> dict[str, Write | None]:
    """Return what a choice makes of the tree with markers; a choice that is no side is a blob."""
    writes: dict[str, Write | None] = dict.fromkeys(clash.aside)
    sides = [side for side in (clash.ours, clash.theirs, clash.base) if side is not None]
    if choice not in TAKE:
        plain_files = [side for side in sides if side.mode != FileMode.SYMLINK]
        writes[clash.path] = Write((plain_files or sides)[0].mode, oid=choice)
        return writes
    blob = clash.ours if choice == "ours" else clash.theirs
    if blob is not None:
        writes[clash.path] = Write(blob.mode, oid=blob.oid)
    elif not clash.aside:
        # Had a version been put aside, a folder of this side would be in its place, to stay there.
        writes[clash.path] = None
    return writes


def _over(changeset_id: str) -> PlanError:
    return PlanError(
        f"Changeset `{changeset_id}` is merged or rejected, and stays so",
        code="CA4108",
        facts={"changeset": changeset_id},
        hint="Start a new attempt on the plan's tree as it is now",
    )


def _not_open(conflict: Conflict) -> PlanError:
    return PlanError(
        f"Conflict `{conflict.id}` is {conflict.state}: there is nothing to choose",
        code="CA4108",
        facts={"conflict": conflict.id, "choice": conflict.choice},
        hint="Run `cleveragents changes conflicts` to see those that are open",
    )
