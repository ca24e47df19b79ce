"""File access for the tools of one attempt: what they write is recorded as they write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cleveragents.domain.changeset import ChangeEntry, Content, FileMode
from cleveragents.domain.errors import PlanError, SandboxError
from cleveragents.domain.paths import folders_of
from cleveragents.infrastructure.sandbox.confined_tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.application.ports import ChangesetStore
    from cleveragents.domain.net_change import FileVersion
    from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree


@dataclass(frozen=True, slots=True)
class RecordedTree:
    """The files of a sandbox and the changeset of its attempt.

    Any number of threads may write. The disk is written first and recorded then, so a record
    is never of something that did not happen. Where two writes of one file cross, a link leads
    to another name, or a record is cut off by a crash, sealing compares the record with the disk
    and adds what is missing.
    """

    tree: ConfinedTree
    changesets: ChangesetStore
    changeset_id: str

    def read(self, path: str) -> bytes:
        """Return what a file holds."""
        return self.tree.read(path)

    def write(
        self, path: str, data: bytes, mode: FileMode | None = None, *, tool_call: str | None = None
    ) -> None:
        """Make a file, or replace what it holds; folders are made as needed."""
        elsewhere = self._is_behind_link(path) or self._is_link(path)
        before = None if elsewhere else self.tree.version(path)
        self.tree.write(path, data, mode)
        if elsewhere:
            return
        after = Content.of(data)
        if before is None:
            made = ChangeEntry.create(path, after, mode or FileMode.REGULAR, tool_call=tool_call)
            self._record(made)
        else:
            self._record(*_modified(before, after, mode, tool_call))

    def remove(self, path: str, *, tool_call: str | None = None) -> None:
        """Take a file away."""
        before = None if self._is_behind_link(path) else self.tree.version(path)
        self.tree.remove(path)
        if before is not None and before.content is not None:
            mode = before.mode or FileMode.REGULAR
            self._record(ChangeEntry.delete(path, before.content, mode, tool_call=tool_call))

    def rename(self, old: str, new: str, *, tool_call: str | None = None) -> None:
        """Move a file or a folder; a file that is at the new name is replaced."""
        elsewhere = self._is_behind_link(old) or self._is_behind_link(new)
        before, there = self._file(old), self._file(new)
        self.tree.rename(old, new)
        if before is not None and there is None and not elsewhere:
            self._record(ChangeEntry.rename(old, new, before.content, tool_call=tool_call))

    def names(self, folder: str = ".") -> tuple[str, ...]:
        """Return what a folder holds, sorted; the names of folders end in `/`."""
        return tuple(
            f"{one.name}/" if one.kind is EntryKind.FOLDER else one.name
            for one in self.tree.list(folder)
        )

    def walk(self) -> Iterator[str]:
        """Return the paths of all files."""
        return self.tree.walk()

    def _is_behind_link(self, path: str) -> bool:
        return any(self._is_link(folder) for folder in folders_of(path))

    def _is_link(self, path: str) -> bool:
        found = self._file(path)
        return found is not None and found.mode is FileMode.SYMLINK

    def _file(self, path: str) -> FileVersion | None:
        try:
            return self.tree.version(path)
        except SandboxError as error:
            if error.code != "CA5007":
                raise
            return None  # a folder

    def _record(self, *entries: ChangeEntry) -> None:
        try:
            self.changesets.record(self.changeset_id, *entries)
        except PlanError as error:
            # An entry that cannot follow those before it was crossed by another write.
            if error.code != "CA4003":
                raise


def _modified(
    before: FileVersion, after: Content, mode: FileMode | None, tool_call: str | None
) -> list[ChangeEntry]:
    entries = []
    if before.content is not None and before.content != after:
        entries.append(ChangeEntry.modify(before.path, before.content, after, tool_call=tool_call))
    if mode is not None and before.mode is not None and before.mode != mode:
        entries.append(ChangeEntry.change_mode(before.path, before.mode, mode, tool_call=tool_call))
    return entries
