"""What an attempt's files differ in from the user's tree, read as they are now.

A file that nobody should read there (ignored, a link, too large) counts as gone: what the user's
tree holds under its name must not be taken for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from cleveragents.application.source_tree import FILE_BYTES_MAX
from cleveragents.domain.changeset import FileMode
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.fragment import is_relative
from cleveragents.infrastructure.sandbox.confined_tree import is_temporary

if TYPE_CHECKING:
    from cleveragents.infrastructure.git.repository import GitRepository
    from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree
    from cleveragents.infrastructure.sandbox.sandbox import Sandbox

__all__ = ["merged_changes", "own_changes"]

#: More than an actor writes; a build that left more must not fill the memory.
ALL_BYTES_MAX: Final = 50_000_000
_LINK: Final = 0o120000


def merged_changes(repository: GitRepository, base: str, head: str) -> dict[str, bytes | None]:
    """Return the files that differ between a plan's base and a commit of its tree."""
    if base == head:
        return {}
    changes = [one for one in repository.changes(base, head) if is_relative(one.path)]
    found: dict[str, bytes | None] = dict.fromkeys(one.path for one in changes)
    files = {one.path: one.new.oid for one in changes if one.new and one.new.mode != _LINK}
    room = _Room()
    for path, data in zip(files, repository.read([*files.values()]), strict=True):
        found[path] = room.take(data)
    return found


def own_changes(
    repository: GitRepository, sandbox: Sandbox, tree: ConfinedTree
) -> dict[str, bytes | None]:
    """Return the files of a sandbox that differ from what it started from."""
    touched = sandbox.touched()
    if touched is None:
        touched = repository.differing(sandbox.path, sandbox.commit)
    paths = [path for path in touched if _is_shown(path)]
    there = [path for path in paths if os.path.lexists(sandbox.path / path)]
    ignored = repository.ignored(sandbox.path, there)
    found: dict[str, bytes | None] = dict.fromkeys(paths)
    room = _Room()
    for path in there:
        if path not in ignored:
            found[path] = room.take(_content(tree, path))
    return found


class _Room:
    """How much may still be held in memory."""

    def __init__(self) -> None:
        self._bytes = ALL_BYTES_MAX

    def take(self, data: bytes | None) -> bytes | None:
        """Return the data, or None where it is too much."""
        if data is None or len(data) > min(FILE_BYTES_MAX, self._bytes):
            return None
        self._bytes -= len(data)
        return data


def _content(tree: ConfinedTree, path: str) -> bytes | None:
    try:
        version = tree.version(path, size_bytes_max=FILE_BYTES_MAX)
    except SandboxError:  # a folder by now, too large, or not ours to read
        return None
    if version is None or version.content is None or version.mode is FileMode.SYMLINK:
        return None
    return version.content.data


def _is_shown(path: str) -> bool:
    """Say whether a name can be one of source code: not git's, not one of a write under way."""
    parts = path.split("/")
    return is_relative(path) and ".git" not in parts and not is_temporary(parts[-1])
