"""What a run of changes amounts to: one net change for each file that ends up different.

An `Overlay` replays changes over a tree that it never sees.
It knows what the changes tell: which files are there, which are gone, and what they were before.
That is enough to refuse a change that cannot be true, and to say what all of them do together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import PlanError
from cleveragents.domain.paths import folders_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cleveragents.domain.changeset import ChangeEntry, Changeset, Content, FileMode


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A file as a change found or left it; None stands for what was not told and did not change."""

    path: str
    content: Content | None = None
    mode: FileMode | None = None


@dataclass(frozen=True, slots=True)
class NetChange:
    """A file before and after; without a before it is created, without an after deleted."""

    before: FileVersion | None
    after: FileVersion | None

    @property
    def path(self) -> str:
        """Where the file is, or was when it is deleted."""
        version = self.after or self.before
        assert version is not None, "a change has a file"
        return version.path


@dataclass(frozen=True, slots=True)
class _File:
    """A file that is there now; `origin` is its path in the first tree, None if it is new."""

    origin: str | None
    content: Content | None = None
    mode: FileMode | None = None


# Distinct from None, which says that a path is known to be gone.
_UNTOUCHED: Final = _File(origin=None)


class Overlay:
    """The files that changes touched, over a tree that is not known.

    Not thread-safe: whoever shares one guards it.
    """

    def __init__(self) -> None:
        self._files: dict[str, _File | None] = {}
        self._originals: dict[str, FileVersion] = {}
        # How many files that are known to be there lie in each folder.
        self._folders: dict[str, int] = {}

    def add(self, changes: Sequence[NetChange]) -> None:
        """Make changes that happen at once, or refuse them all with CA4003."""
        leaving = {change.before.path for change in changes if change.before}
        for change in changes:
            if change.before:
                self._check_there(change.before.path)
            if change.after and change.after.path not in leaving:
                self._check_free(change.after.path, leaving)
        taken = [self._take(change.before) if change.before else None for change in changes]
        for change, file in zip(changes, taken, strict=True):
            if change.after:
                self._put(change.after, file or _File(origin=None))

    def agrees_with(self, version: FileVersion) -> bool:
        """Tell whether nothing known of a path speaks against this version of it."""
        file = self._files.get(version.path, _UNTOUCHED)
        return file is not None and (
            _agree(file.content, version.content) and _agree(file.mode, version.mode)
        )

    def has(self, change: NetChange) -> bool:
        """Tell whether the files are already as this change would leave them."""
        before, after = change.before, change.after
        if before and (after is None or before.path != after.path):
            # A file that moved here unread could be any file: only its content tells.
            unread = after is not None and after.content is None
            if unread or self._files.get(before.path, _UNTOUCHED) is not None:
                return False
        if after is None:
            return True
        file = self._files.get(after.path)
        return file is not None and (file.content, file.mode) == (after.content, after.mode)

    def net(self) -> tuple[NetChange, ...]:
        """Return what changed from the first tree to the last, ordered by path."""
        lost = dict(self._originals)
        pairs: list[tuple[FileVersion | None, FileVersion | None]] = []
        there = [(path, file) for path, file in self._files.items() if file is not None]
        # Files that moved claim their origin first; a new file then replaces what was lost there.
        for path, file in sorted(there, key=lambda item: item[1].origin is None):
            original = lost.pop(path if file.origin is None else file.origin, None)
            pairs.append((original, FileVersion(path, file.content, file.mode)))
        pairs.extend((original, None) for original in lost.values())
        changes = [NetChange(before, after) for before, after in pairs if before != after]
        return tuple(sorted(changes, key=lambda change: change.path))

    def _check_there(self, path: str) -> None:
        file = self._files.get(path, _UNTOUCHED)
        if file is None:
            raise _refused(path, "is gone: it was deleted or renamed away before")
        if file is _UNTOUCHED:
            self._check_place(path, leaving=set())

    def _check_free(self, path: str, leaving: set[str]) -> None:
        if self._files.get(path) is not None:
            raise _refused(path, "is there already; delete it or rename it away first")
        self._check_place(path, leaving)

    def _check_place(self, path: str, leaving: set[str]) -> None:
        """Refuse a file where a folder is, and a file inside a file."""
        inside = self._folders.get(path, 0)
        if inside and inside > sum(path in folders_of(other) for other in self._known(leaving)):
            raise _refused(path, "is a folder: files inside it were recorded before")
        for folder in folders_of(path):
            if self._files.get(folder) is not None and folder not in leaving:
                raise _refused(path, f"cannot be inside {folder!r}, which is a file")

    def _known(self, paths: set[str]) -> list[str]:
        return [path for path in paths if self._files.get(path) is not None]

    def _take(self, before: FileVersion) -> _File:
        file = self._files.get(before.path, _UNTOUCHED)
        assert file is not None, "checked before"
        if file is _UNTOUCHED:
            file = _File(before.path)
            self._originals[before.path] = FileVersion(before.path)
        else:
            self._count(before.path, -1)
        self._files[before.path] = None
        return self._learn(file, before)

    def _put(self, after: FileVersion, file: _File) -> None:
        self._count(after.path, 1)
        self._files[after.path] = _File(
            file.origin, after.content or file.content, after.mode or file.mode
        )

    def _learn(self, file: _File, before: FileVersion) -> _File:
        """Take what was not known, and so was never changed, as what it has been from the start."""
        content = file.content or before.content
        mode = file.mode or before.mode
        if file.origin is not None:
            first = self._originals[file.origin]
            self._originals[file.origin] = replace(
                first, content=first.content or content, mode=first.mode or mode
            )
        return _File(file.origin, content, mode)

    def _count(self, path: str, files: int) -> None:
        for folder in folders_of(path):
            self._folders[folder] = self._folders.get(folder, 0) + files


def change_of(entry: ChangeEntry) -> NetChange:
    """Return what one entry says about its file."""
    before = FileVersion(entry.old_path or entry.path, entry.before, entry.mode_before)
    after = FileVersion(entry.path, entry.after, entry.mode_after)
    return NetChange(
        None if entry.kind == "create" else before, None if entry.kind == "delete" else after
    )


def overlay_of(entries: Iterable[ChangeEntry]) -> Overlay:
    """Return the overlay that entries make, one after the other."""
    overlay = Overlay()
    for entry in entries:
        overlay.add([change_of(entry)])
    return overlay


def net_changes(entries: Iterable[ChangeEntry]) -> tuple[NetChange, ...]:
    """Return what entries amount to, from the first `before` of each file to its last `after`.

    An entry whose `before` is not what the entry before it left is believed:
    something outside the tools changed the file, and the last `after` holds all of it.
    """
    return overlay_of(entries).net()


def combined(changesets: Iterable[Changeset]) -> tuple[NetChange, ...]:
    """Return what changesets amount to, one after the other.

    Each must start from what those before it left, or make the very same change.
    Where one starts from another version, taking its `after` would silently undo the others:
    that is refused with CA4004, and needs a merge.
    """
    overlay = Overlay()
    for changeset in changesets:
        changes = [change for change in net_changes(changeset.entries) if not overlay.has(change)]
        for change in changes:
            if change.before and not overlay.agrees_with(change.before):
                raise _unmerged(changeset, change.before.path)
        try:
            overlay.add(changes)
        except PlanError as error:
            raise _unmerged(changeset, error.facts["path"]) from error
    return overlay.net()


def _agree(one: object, other: object) -> bool:
    return one is None or other is None or one == other


def _refused(path: str, reason: str) -> PlanError:
    return PlanError(
        f"The changeset cannot hold this change: {path!r} {reason}",
        code="CA4003",
        facts={"path": path, "reason": reason},
        hint="Record every change of a file, in the order in which they happened",
    )


def _unmerged(changeset: Changeset, path: str) -> PlanError:
    return PlanError(
        f"Changeset `{changeset.id}` starts from another version of {path!r}"
        " than the changesets before it left",
        code="CA4004",
        facts={"changeset": changeset.id, "path": path},
        hint=f'Merge the changesets, or ask for one: `diff("{changeset.id}")`',
    )
