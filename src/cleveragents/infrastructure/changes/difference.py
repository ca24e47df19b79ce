"""The difference between two versions of a tree, as git tells it: patch, summary or records."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    from cleveragents.infrastructure.git.repository import GitRepository, TreeChange


@dataclass(frozen=True, slots=True)
class Difference:
    """Two commits, and what turns one into the other."""

    repository: GitRepository
    old: str
    new: str

    def patch(self, *, color: bool = False, binary: bool = False) -> bytes:
        """Return a patch that turns one version into the other; renames are told as such.

        With `binary`, it holds binary files whole, so that `git apply` can make them.
        """
        return self._said(*(("--binary", "--full-index") if binary else ()), color=color)

    def summary(self, *, color: bool = False) -> bytes:
        """Return how many lines of which files changed."""
        return self._said("--stat=100", color=color)

    def records(self) -> list[dict[str, Any]]:
        """Return one record for each changed file, with its counts of lines."""
        counts = _counts(self._said("--numstat", "-z"))
        changes = self.repository.changes(self.old, self.new, renames=True)
        return [_record(change, *counts[change.path]) for change in changes]

    def _said(self, *options: str, color: bool = False) -> bytes:
        shown = "--color=always" if color else "--no-color"
        plain_git = ("--no-ext-diff", "--no-textconv", "-M", "-l10000", shown)
        return self.repository.git("diff", *plain_git, *options, self.old, self.new, "--")


def _counts(said: bytes) -> dict[str, tuple[int | None, int | None]]:
    """Read `--numstat -z`: of a renamed file, both names follow as fields of their own."""
    fields = iter(said.split(b"\0")[:-1])
    found = {}
    for field in fields:
        added, removed, name = field.split(b"\t", 2)
        if not name:
            next(fields)
            name = next(fields)
        found[os.fsdecode(name)] = (_number(added), _number(removed))
    return found


def _number(text: bytes) -> int | None:
    # A binary file has no lines.
    return None if text == b"-" else int(text)


def _record(change: TreeChange, added: int | None, removed: int | None) -> dict[str, Any]:
    return {
        "kind": "file",
        "change": _word(change),
        "path": plain(change.path),
        "old_path": change.old_path and plain(change.old_path),
        "mode_before": change.old and f"{change.old.mode:06o}",
        "mode_after": change.new and f"{change.new.mode:06o}",
        "before": change.old and change.old.oid,
        "after": change.new and change.new.oid,
        "added": added,
        "removed": removed,
    }


def _word(change: TreeChange) -> str:
    if change.old_path is not None:
        return "rename"
    if change.old is None:
        return "create"
    if change.new is None:
        return "delete"
    return "mode" if change.old.oid == change.new.oid else "modify"
