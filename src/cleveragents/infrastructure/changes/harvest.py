"""Changesets from reality: what an attempt left on disk, told as change entries.

What a tool recorded through our API is believed and kept; what the disk shows beyond that,
because a command wrote it, is recorded after it. Together they are what the disk shows.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from cleveragents.domain.changeset import ChangeEntry, FileMode
from cleveragents.domain.errors import PlanError
from cleveragents.domain.net_change import net_changes
from cleveragents.domain.paths import folders_of
from cleveragents.infrastructure.git.repository import Write
from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree, is_temporary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from cleveragents.application.ports import ChangesetStore
    from cleveragents.domain.changeset import Changeset
    from cleveragents.domain.net_change import NetChange
    from cleveragents.infrastructure.changes.plan_trees import PlanTrees
    from cleveragents.infrastructure.git.repository import Blob, GitRepository, TreeChange
    from cleveragents.infrastructure.sandbox.sandbox import Sandbox

# What leaves makes room for what comes.
_ORDER: Final = ("delete", "rename", "create", "modify", "mode")


class Harvest:
    """Seals attempts: their changes are in the content store before their sandbox may go.

    Safe from any thread; the same changeset sealed twice, also after a crash, is sealed once.
    Of several that seal it at the same moment, slower ones may be refused with CA4002 or CA4003.
    What is sealed is what the disk shows, and the entries of the changeset tell all of it.
    """

    def __init__(
        self, repository: GitRepository, changesets: ChangesetStore, trees: PlanTrees
    ) -> None:
        self._repository = repository
        self._changesets = changesets
        self._trees = trees

    def seal(self, sandbox: Sandbox, changeset_id: str) -> Changeset:
        """Record what the sandbox holds beyond the changeset, finish that, and hand it in."""
        changeset = self._changesets.get(changeset_id)
        if self._trees.is_sealed(changeset_id):
            return changeset
        by = changeset.actor or changeset.node or "cleveragents"
        told = self._told(sandbox.commit, changeset, by)
        if changeset.finished and sandbox.torn:
            # The record was complete, and came through the fall of the machine; files need not.
            shown = told
        else:
            shown = self._shown(sandbox, changeset, told, by)
        entries = self._entries(changeset, told, shown)
        if changeset.finished and entries:
            raise _finished_too_early(changeset, entries)
        if not changeset.finished:
            self._changesets.record(changeset_id, *entries)
            self._changesets.finish(changeset_id)
            changeset = self._changesets.get(changeset_id)
        self._trees.seal(sandbox.plan, changeset_id, sandbox.commit, shown)
        return changeset

    def _told(self, start: str, changeset: Changeset, by: str) -> str:
        """Return a commit of what the changeset says, over what the attempt started from."""
        changes = net_changes(changeset.entries)
        if not changes:
            return start
        names = [change.before.path for change in changes if change.before]
        writes = _writes(changes, self._repository.files(start, names))
        return self._repository.commit(start, writes, by=by)

    def _shown(self, sandbox: Sandbox, changeset: Changeset, told: str, by: str) -> str:
        """Return a commit of what the sandbox shows, over what the changeset says."""
        touched = sandbox.touched()
        if touched is None:
            return self._repository.snapshot_of(sandbox.path, told)
        # What was recorded and then taken away by a command leaves no trace on the disk.
        named = {path for one in changeset.entries for path in (one.path, one.old_path) if path}
        paths = [path for path in sorted(named.union(touched)) if not _is_private(path)]
        before = self._repository.files(told, paths)
        there = [path for path in paths if _is_file(sandbox.path, path)]
        fresh = [path for path in there if path not in before]
        left_out = self._repository.ignored(sandbox.path, fresh)
        left_out |= self._in_repositories(sandbox.path, told, fresh)
        kept = set(there) - left_out
        writes: dict[str, Write | None] = {path: None for path in before if path not in kept}
        with ConfinedTree(sandbox.path) as tree:
            for path in sorted(kept):
                version = tree.version(path)
                assert version is not None, "the attempt is over: nobody takes files away"
                assert version.content is not None, "it was read"
                writes[path] = Write(version.mode or FileMode.REGULAR, version.content.data)
        return self._repository.commit(told, writes, by=by) if writes else told

    def _in_repositories(self, folder: Path, told: str, fresh: Sequence[str]) -> set[str]:
        """Return the new files of repositories that were made inside the sandbox."""
        above = {path: folders_of(path) for path in fresh}
        made = {one for folders in above.values() for one in folders if _is_repository(folder, one)}
        if made:
            # A folder whose files are part of the tree stays so, whatever is put beside them.
            made.difference_update(*map(folders_of, self._repository.files(told)))
        return {path for path, folders in above.items() if not made.isdisjoint(folders)}

    def _entries(self, changeset: Changeset, old: str, new: str) -> list[ChangeEntry]:
        """Return the difference of two commits as entries that can follow those of a changeset."""
        if old == new:
            return []
        entries = self._as_entries(self._repository.changes(old, new, renames=True))
        try:
            net_changes((*changeset.entries, *entries))
        except PlanError:
            # Files and folders that changed places: told without renames, there is an order.
            entries = self._as_entries(self._repository.changes(old, new))
        return entries

    def _as_entries(self, changes: Sequence[TreeChange]) -> list[ChangeEntry]:
        oids = [
            blob.oid for change in changes for blob in (change.old, change.new) if blob is not None
        ]
        contents = dict(zip(oids, self._repository.read(oids), strict=True))
        told = [entry for change in changes for entry in _entry(change, contents)]
        return sorted(told, key=lambda entry: _ORDER.index(entry.kind))


def _is_private(path: str) -> bool:
    """Say whether a name is git's own, or that of a write which was cut short."""
    *_, name = parts = path.split("/")
    return ".git" in parts or is_temporary(name)


def _is_file(folder: Path, path: str) -> bool:
    """Say whether a path leads to a file or a link, and not through a link."""
    for above in folders_of(path):
        if (folder / above).is_symlink():
            return False
    try:
        mode = (folder / path).lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _is_repository(folder: Path, path: str) -> bool:
    inside = folder / path / ".git"
    return inside.is_file() or (inside / "HEAD").is_file()


def _writes(changes: Iterable[NetChange], before: Mapping[str, Blob]) -> dict[str, Write | None]:
    """Return net changes as writes; what they do not tell is as it was."""
    writes: dict[str, Write | None] = {}
    for change in changes:
        old, new = change.before, change.after
        if old is not None and (new is None or new.path != old.path):
            writes.setdefault(old.path, None)
        if new is None:
            continue
        known = before.get(old.path) if old is not None else None
        mode = new.mode or (known.mode if known else FileMode.REGULAR)
        if new.content is None and known is not None:
            writes[new.path] = Write(mode, oid=known.oid)
        else:
            # Of a file that was ignored and moved unread nothing is known, until the disk is read.
            writes[new.path] = Write(mode, new.content.data if new.content else b"")
    return writes


def _entry(change: TreeChange, contents: Mapping[str, bytes]) -> list[ChangeEntry]:
    old, new, path = change.old, change.new, change.path
    if old is None or new is None or _kind(old) != _kind(new):
        gone = [] if old is None else [ChangeEntry.delete(path, contents[old.oid], old.mode)]
        made = [] if new is None else [ChangeEntry.create(path, contents[new.oid], new.mode)]
        return gone + made
    before, after = contents[old.oid], contents[new.oid]
    told = []
    if change.old_path is not None:
        told.append(ChangeEntry.rename(change.old_path, path, before, after))
    elif before != after:
        told.append(ChangeEntry.modify(path, before, after))
    if old.mode != new.mode:
        told.append(ChangeEntry.change_mode(path, old.mode, new.mode))
    return told


def _kind(blob: Blob) -> int:
    return blob.mode >> 12


def _finished_too_early(changeset: Changeset, entries: Sequence[ChangeEntry]) -> PlanError:
    paths = sorted({entry.path for entry in entries})
    return PlanError(
        f"Changeset `{changeset.id}` was finished, and its sandbox holds changes beyond it:"
        f" {paths[0]!r}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else ""),
        code="CA4108",
        facts={"changeset": changeset.id, "paths": paths},
        hint="Seal a changeset while it is open: sealing finishes it",
    )
