"""Changesets from reality: what an attempt left on disk, told as change entries.

What a tool recorded through our API is believed and kept; what the disk shows beyond that,
because a command wrote it, is recorded after it. Together they are what the disk shows, but for
what no changeset can take: that is left out, and told.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cleveragents.domain.changeset import ChangeEntry, ChangeKind, FileMode
from cleveragents.domain.errors import PlanError, SandboxError
from cleveragents.domain.net_change import net_changes
from cleveragents.domain.paths import escape, folders_of
from cleveragents.infrastructure.git.repository import Write
from cleveragents.infrastructure.git.user_repository import UserRepository, is_repository
from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree, is_temporary
from cleveragents.infrastructure.sandbox.upper import closed_folders, is_closed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from cleveragents.application.ports import ChangesetStore
    from cleveragents.domain.changeset import Changeset, Content
    from cleveragents.domain.net_change import NetChange
    from cleveragents.infrastructure.changes.plan_trees import PlanTrees
    from cleveragents.infrastructure.git.repository import Blob, GitRepository, TreeChange
    from cleveragents.infrastructure.sandbox.sandbox import Sandbox

#: Larger files are left out: a row of the store has no room for them.
FILE_BYTES_MAX: Final = 999_000_000
_LARGE_BYTES: Final = 1_000_000
_CLOSED: Final = "The folder may not be read"
_FOREIGN: Final = "It belongs to another git repository"
# Git refuses to have a link in the place of its list of submodules, however the name is spelled.
_NO_LINKS: Final = (".gitmodules", "gitmod~", "gi7eb")
# What leaves makes room for what comes.
_ORDER: Final = ("delete", "rename", "create", "modify", "mode")


class Harvest:
    """Seals attempts: their changes are in the content store before their sandbox may go.

    Safe from any thread; the same changeset sealed twice, also after a crash, is sealed once.
    Of several that seal it at the same moment, slower ones may be refused with CA4002 or CA4003.
    What is sealed is what the disk shows, and the entries of the changeset tell all of it. What
    cannot be taken never keeps the rest from being sealed: it stays as it was in the plan's tree,
    and `PlanTrees.left_out` tells it. That are names that open `.git` somewhere, files that are too
    large or may not be read, and whatever lies in another repository.
    """

    def __init__(
        self,
        repository: GitRepository,
        changesets: ChangesetStore,
        trees: PlanTrees,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._repository = repository
        self._changesets = changesets
        self._trees = trees
        self._clock = clock

    def seal(self, sandbox: Sandbox, changeset_id: str) -> Changeset:
        """Record what the sandbox holds beyond the changeset, finish that, and hand it in."""
        changeset = self._changesets.get(changeset_id)
        if self._trees.is_sealed(changeset_id):
            return changeset
        by = changeset.actor or changeset.node or "cleveragents"
        told = self._told(sandbox.commit, changeset, by)
        left_out: dict[str, str] = {}
        if changeset.finished and sandbox.torn:
            # The record was complete, and came through the fall of the machine; files need not.
            shown = told
        else:
            shown, left_out = self._shown(sandbox, changeset, told, by)
        entries = self._entries(changeset, told, shown)
        if changeset.finished and entries:
            raise _finished_too_early(changeset, entries)
        if not changeset.finished:
            now = self._clock()
            timed = [replace(entry, at=now) for entry in entries]
            self._changesets.record(changeset_id, *timed)
            self._changesets.finish(changeset_id)
            # As the store has it by now; to read large contents again would take its time.
            changeset = replace(changeset, entries=(*changeset.entries, *timed), finished=True)
        self._trees.seal(sandbox.plan, changeset_id, sandbox.commit, shown, left_out)
        return changeset

    def _told(self, start: str, changeset: Changeset, by: str) -> str:
        """Return a commit of what the changeset says, over what the attempt started from."""
        changes, same = net_changes(changeset.entries), _edited(changeset.entries)
        names = [change.before.path for change in changes if change.before]
        known = self._repository.files(start, [*names, *same])
        writes = _writes(changes, known)
        # Edited to and fro, a file that a command had made before is still new.
        for path in same.keys() - writes.keys() - known.keys():
            writes[path] = Write(FileMode.REGULAR, same[path].data)
        return self._repository.commit(start, writes, by=by) if writes else start

    def _shown(
        self, sandbox: Sandbox, changeset: Changeset, told: str, by: str
    ) -> tuple[str, dict[str, str]]:
        """Return a commit of what the sandbox shows, over what the changeset says.

        Beside it: what could not be taken, and why.
        """
        sandbox.check()
        folder, ground = sandbox.path, sandbox.ground
        left_out = dict.fromkeys(closed_folders(ground.upper or folder, folder), _CLOSED)
        touched = sandbox.touched()
        if touched is None:
            touched = self._repository.differing(folder, told)
        # What was recorded and then taken away by a command leaves no trace on the disk.
        named = {path for one in changeset.entries for path in (one.path, one.old_path) if path}
        paths = [
            path
            for path in sorted(named.union(touched))
            if not _is_private(path) and left_out.keys().isdisjoint(_on_the_way(path))
        ]
        before = self._repository.files(told, paths)
        there = [path for path in paths if path.endswith("/") or _is_file(folder, path)]
        ignored = self._repository.ignored(folder, [one for one in there if one not in before])
        kept = set(there) - ignored
        foreign = self._foreign(sandbox, told, kept)
        left_out |= dict.fromkeys(foreign.values(), _FOREIGN)
        kept -= foreign.keys()
        writes: dict[str, Write | None] = {path: None for path in before if path not in kept}
        with ConfinedTree(folder) as tree:
            for path in sorted(kept):
                try:
                    taken = _taken(tree, path)
                except SandboxError as error:
                    if isinstance(error.__cause__, OSError) and not is_closed(error.__cause__):
                        raise
                    left_out[path] = error.message
                else:
                    writes[path] = self._light(taken)
        left_out = {path: why for path, why in left_out.items() if not _is_private(path)}
        return self._repository.commit(told, writes, by=by) if writes else told, left_out

    def _light(self, write: Write) -> Write:
        """Keep a large content at once: it need not be packed twice."""
        if len(write.data) < _LARGE_BYTES:
            return write
        return Write(write.mode, oid=self._repository.keep(write.data))

    def _foreign(self, sandbox: Sandbox, told: str, paths: Iterable[str]) -> dict[str, str]:
        """Return those paths that lie in another repository, each with the folder of that.

        It was made inside the sandbox, or it is one in the user's tree, which is left alone.
        """
        ways = {path: _on_the_way(path) for path in paths}
        places = {place for way in ways.values() for place in way}
        made = {place for place in places if is_repository(sandbox.path, place)}
        if made:
            # A folder whose files are part of the tree stays so, whatever is put beside them.
            made.difference_update(*map(folders_of, self._repository.files(told)))
        if places:
            start = self._repository.files(sandbox.commit)
            places.difference_update(start, *map(folders_of, start))
        if places:
            made |= UserRepository(self._repository.root).others(places)
        found = {path: [one for one in way if one in made] for path, way in ways.items()}
        return {path: way[0] for path, way in found.items() if way}

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


def _on_the_way(path: str) -> list[str]:
    """Return the folders that a path lies in, and at last itself."""
    return [*folders_of(path), path] if path[-1] != "/" else folders_of(path)


def _is_file(folder: Path, path: str) -> bool:
    """Say whether a path leads to a file or a link, and not through a link."""
    if any(os.path.islink(folder / above) for above in folders_of(path)):  # noqa: PTH114  # `Path.is_symlink` raises where we may not look
        return False
    try:
        mode = (folder / path).lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # whatever it is, reading it will tell why it cannot be taken
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _taken(tree: ConfinedTree, path: str) -> Write:
    """Read a file as it shall be kept; CA5001 or CA5007 say why it cannot be."""
    place = tree.folder / path
    with suppress(OSError):
        mode = place.lstat().st_mode
        if stat.S_ISREG(mode) and not mode & stat.S_IRUSR:
            place.chmod(stat.S_IMODE(mode) | stat.S_IRUSR)
    version = tree.version(path, size_bytes_max=FILE_BYTES_MAX)
    assert version is not None, "the attempt is over: nobody takes files away"
    assert version.content is not None, "it was read"
    name = path.rpartition("/")[2].casefold()
    if version.mode is FileMode.SYMLINK and name.startswith(_NO_LINKS):
        raise escape(path, "must be no link: git keeps its list of submodules there")
    return Write(version.mode or FileMode.REGULAR, version.content.data)


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


def _edited(entries: Iterable[ChangeEntry]) -> dict[str, Content]:
    """Return the files that were edited and are still where they were, as they were left."""
    found: dict[str, Content] = {}
    for entry in entries:
        if entry.kind is ChangeKind.MODIFY and entry.after is not None:
            found[entry.path] = entry.after
        elif entry.kind is not ChangeKind.MODE:
            for path in (entry.path, entry.old_path):
                found.pop(path or "", None)
    return found


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
