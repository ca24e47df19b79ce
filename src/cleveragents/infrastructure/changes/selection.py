"""Which part of a plan's changes is meant: all, those of some actors, those of some paths."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from cleveragents.domain.changeset import FileMode
from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.changes.merge_rows import unknown
from cleveragents.infrastructure.git.merge import merge
from cleveragents.infrastructure.git.repository import Write
from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.infrastructure.changes.merge_rows import MergeRow
    from cleveragents.infrastructure.git.merge import Clash, Merged
    from cleveragents.infrastructure.git.repository import GitRepository
    from cleveragents.infrastructure.sandbox.sandbox import PlanTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A part of a plan's changes; what is empty does not restrict."""

    actors: tuple[str, ...] = ()
    #: Files, folders, or patterns such as `src/*.py`, from the root of the tree.
    paths: tuple[str, ...] = ()

    def has_path(self, path: str) -> bool:
        """Say whether a path is meant."""
        return not self.paths or any(_is_meant(path, one) for one in self.paths)


EVERYTHING: Final = Selection()


@dataclass(frozen=True, slots=True)
class Level:
    """How much of a plan is in the user's tree: a version of the plan's own tree.

    `changesets` are those that are in it whole; of others a part may be in it too.
    """

    commit: str
    changesets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PlanState:
    """A plan's tree and its sealed changesets, as they were at one moment."""

    plan_id: str
    tree: PlanTree
    merges: tuple[MergeRow, ...]

    @property
    def merged(self) -> tuple[MergeRow, ...]:
        """The changesets in the plan's tree, in the order in which they came."""
        done = [row for row in self.merges if row.merged is not None]
        return tuple(sorted(done, key=lambda row: row.merged or 0))


@dataclass(frozen=True, slots=True)
class _Step:
    row: MergeRow
    start: str
    end: str


def selected_commit(repository: GitRepository, plan: PlanState, selection: Selection) -> str:
    """Return the plan's base with the selected part of its merged changes."""
    return next_level(repository, plan, Level(plan.tree.base), selection).commit


def next_level(
    repository: GitRepository, plan: PlanState, level: Level, selection: Selection
) -> Level:
    """Return what the user's tree shall hold of the plan: what it holds now, and the selection."""
    commit, rows = plan.tree.head, plan.merged
    if selection.actors:
        rows = _of_actors(plan, selection.actors)
        commit = _with_rows(repository, plan, level, rows)
    if selection.paths:
        _check_paths(repository, plan, (level.commit, commit), selection)
        commit, rows = on_paths(repository, level.commit, commit, selection), ()
    if repository.tree_of(commit) == repository.tree_of(level.commit):
        commit = level.commit
    return Level(commit, level.changesets | {row.changeset_id for row in rows})


def on_paths(repository: GitRepository, old: str, new: str, selection: Selection) -> str:
    """Return the old version with what is new on the selected paths."""
    writes = {
        change.path: None if change.new is None else Write(change.new.mode, oid=change.new.oid)
        for change in repository.changes(old, new)
        if selection.has_path(change.path)
    }
    return repository.commit(old, writes) if writes else old


def merge_over(repository: GitRepository, base: str, ours: str, theirs: str) -> Merged:
    """Merge two versions over a third, whatever their history says."""
    asked = (f"{version}^{{tree}}" for version in (base, ours, theirs))
    first, *trees = repository.git("rev-parse", *asked).decode().split()
    root = repository.commit_tree(first)
    sides = [repository.commit_tree(tree, root) for tree in trees]
    return merge(repository, *sides)


def decided(repository: GitRepository, merged: Merged, parent: str, *, ours: bool) -> str:
    """Return a commit of a merge in which one side wins wherever the two clash."""
    commit = repository.commit_tree(merged.tree, parent)
    writes: dict[str, Write | None] = {}
    for clash in merged.clashes:
        writes |= dict.fromkeys(clash.aside)
        winner = _winner(repository, clash, ours=ours)
        if winner is not None or not clash.aside:
            # Had a version been put aside, the winner's folder would be in its place, to stay.
            writes[clash.path] = winner
    return repository.commit(commit, writes) if writes else commit


def file_counts(repository: GitRepository, rows: Sequence[MergeRow]) -> list[int]:
    """Return how many files each changeset changed."""
    if not rows:
        return []
    asked = "".join(f"{row.theirs} {row.start}\n" for row in rows).encode()
    listing = ("diff-tree", "--stdin", "--always", "-r", "-z", "--raw", "-M", "-l10000")
    counts: list[int] = []
    fields = iter(repository.git(*listing, stdin=asked).split(b"\0")[:-1])
    for field in fields:
        if not field.startswith(b":"):
            # The id of the next commit; names follow a line that begins with a colon.
            counts.append(0)
            continue
        counts[-1] += 1
        for _ in range(2 if field.rpartition(b" ")[2][:1] in b"RC" else 1):
            next(fields)
    return counts


def shown(path: str) -> str:
    """Return a path as people read it, on one line."""
    told = plain(path)
    return f"`{told}`" if told.isprintable() else repr(told)


def _winner(repository: GitRepository, clash: Clash, *, ours: bool) -> Write | None:
    """Return the file with the winner's places; what the other changed elsewhere in it stays."""
    blob = clash.ours if ours else clash.theirs
    if blob is None:
        return None
    if clash.base is None or clash.ours is None or clash.theirs is None:
        return Write(blob.mode, oid=blob.oid)
    versions = (clash.ours, clash.base, clash.theirs)
    contents = list(repository.read([one.oid for one in versions]))
    is_text = all(b"\0" not in data for data in contents)
    if not is_text or FileMode.SYMLINK in {one.mode for one in versions}:
        return Write(blob.mode, oid=blob.oid)
    mode = clash.theirs.mode if clash.ours.mode == clash.base.mode else clash.ours.mode
    with TemporaryDirectory(dir=repository.folder, prefix="merge-") as folder:
        names = [f"{folder}/{number}" for number in range(3)]
        for name, data in zip(names, contents, strict=True):
            Path(name).write_bytes(data)
        way = "--ours" if ours else "--theirs"
        return Write(mode, repository.git("merge-file", "--stdout", "--quiet", way, *names))


def _is_meant(path: str, one: str) -> bool:
    name = one.rstrip("/").removeprefix("./")
    return name in {".", path} or path.startswith(f"{name}/") or fnmatchcase(path, name)


def _of_actors(plan: PlanState, actors: tuple[str, ...]) -> tuple[MergeRow, ...]:
    known = {name for row in plan.merges for name in (row.actor, row.node)}
    for actor in actors:
        if actor not in known:
            hint = "Run `cleveragents changes show` with the plan to see who worked on it"
            raise unknown("Actor", actor, hint)
    return tuple(row for row in plan.merged if {row.actor, row.node} & set(actors))


def _with_rows(
    repository: GitRepository, plan: PlanState, level: Level, rows: tuple[MergeRow, ...]
) -> str:
    """Return a level with changesets added to it, whatever else of the plan it holds."""
    there = tuple(row for row in rows if row.changeset_id in level.changesets)
    theirs = _alone(repository, plan, rows)
    if level.commit == plan.tree.base:
        return theirs
    # Over the part of them that the level has: only what is new in them is merged.
    merged = merge_over(repository, _alone(repository, plan, there), level.commit, theirs)
    if merged.clashes:
        raise _builds_on_others(rows[-1], merged.clashes[0].path)
    return repository.commit_tree(merged.tree, level.commit)


def _alone(repository: GitRepository, plan: PlanState, rows: tuple[MergeRow, ...]) -> str:
    """Return the plan's base with these changesets, as they were merged, and no others."""
    head = plan.tree.base
    for step in _steps(plan, rows):
        if head == step.start:
            head = step.end
            continue
        merged = merge_over(repository, step.start, head, step.end)
        if merged.clashes:
            raise _builds_on_others(step.row, merged.clashes[0].path)
        head = repository.commit_tree(merged.tree, head)
    return head


def _steps(plan: PlanState, rows: tuple[MergeRow, ...]) -> list[_Step]:
    """Return how the plan's tree was changed by these; what one actor did in a row is one step."""
    before, last = {}, plan.tree.base
    for row in plan.merged:
        before[row.changeset_id], last = last, row.head or last
    steps: list[_Step] = []
    for row in rows:
        start = before[row.changeset_id]
        step = _Step(row, start, row.head or start)
        if steps and steps[-1].end == start and steps[-1].row.actor == row.actor:
            step = _Step(row, steps.pop().start, step.end)
        steps.append(step)
    return steps


def _check_paths(
    repository: GitRepository, plan: PlanState, versions: tuple[str, str], selection: Selection
) -> None:
    """Refuse a path on which the plan has never changed anything: it is a mistake."""
    pairs = (versions, (plan.tree.base, plan.tree.head))
    touched = {change.path for pair in pairs for change in repository.changes(*pair)}
    for one in selection.paths:
        if not any(_is_meant(path, one) for path in touched):
            raise PlanError(
                f"Plan `{plan.plan_id}` changes nothing on the path {one!r}",
                code="CA4107",
                facts={"plan": plan.plan_id, "path": repr(one)},
                hint="Name a file, a folder or a pattern such as `src/*.py`, from the root",
            )


def _builds_on_others(row: MergeRow, path: str) -> PlanError:
    actor = row.actor or row.node or row.changeset_id
    return PlanError(
        f"The changes of {actor!r} to {shown(path)} build on those of another actor",
        code="CA4108",
        facts={"actor": actor, "path": repr(path)},
        hint="Name that actor too, or leave the actors out to take all changes",
    )
