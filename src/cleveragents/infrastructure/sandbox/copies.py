"""Sandboxes where overlays cannot be had: each with all files of its own."""

from __future__ import annotations

import fcntl
import shutil
from typing import TYPE_CHECKING, Final

from cleveragents.infrastructure.sandbox.erasure import erase
from cleveragents.infrastructure.sandbox.layers import remove_entry
from cleveragents.infrastructure.sandbox.sandbox import Ground

if TYPE_CHECKING:
    from pathlib import Path

    from cleveragents.infrastructure.git.repository import GitRepository
    from cleveragents.infrastructure.sandbox.layers import Layers
    from cleveragents.infrastructure.sandbox.sandbox import PlanTree

#: Linux's request to share the blocks of another file until one of both is written.
_FICLONE: Final = 0x40049409


class WorktreeKind:
    """Each sandbox is a commit that git checked out, without a way back into our repository."""

    name: Final = "worktree"

    def __init__(self, repository: GitRepository, layers: Layers) -> None:
        self._repository = repository
        self._layers = layers

    def why_not(self) -> str | None:
        """Return why worktrees cannot be used here: never."""
        return None

    def make(self, folder: Path, tree: PlanTree) -> Ground:
        """Check a commit out, with the empty folders that it cannot hold."""
        self._layers.prepare(tree.base)
        target = folder / "tree"
        target.mkdir()
        self._repository.checkout(tree.head, target)
        self._layers.make_empty_folders(target, tree.base)
        return _plain(folder)

    def open(self, folder: Path, _tree: PlanTree) -> Ground:
        """Return where the files are."""
        return _plain(folder)

    def remove(self, folder: Path) -> None:
        """Delete the files."""
        erase(folder)

    def close(self) -> None:
        """Do nothing: files need nobody."""


class CopyKind:
    """Each sandbox is a copy of the snapshot; its blocks are shared where the disk can do that."""

    name: Final = "copy"

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def why_not(self) -> str | None:
        """Return why copies cannot be used here: never."""
        return None

    def make(self, folder: Path, tree: PlanTree) -> Ground:
        """Copy the plan's base, and change it to its head."""
        target = folder / "tree"
        shutil.copytree(
            self._layers.snapshot(tree.base), target, symlinks=True, copy_function=_clone
        )
        self._layers.write(target, self._layers.delta(tree), remove_entry)
        return _plain(folder)

    def open(self, folder: Path, _tree: PlanTree) -> Ground:
        """Return where the files are."""
        return _plain(folder)

    def remove(self, folder: Path) -> None:
        """Delete the files."""
        erase(folder)

    def close(self) -> None:
        """Do nothing: files need nobody."""


def _plain(folder: Path) -> Ground:
    return Ground(path=folder / "tree", inner=folder / "tree")


def _clone(source: str, target: str) -> None:
    """Copy one file with its mode and times, sharing its blocks where the disk can do that."""
    try:
        with open(source, "rb") as old, open(target, "wb") as new:  # noqa: PTH123  # 20,000 of them
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
    except OSError:
        shutil.copyfile(source, target)
    shutil.copystat(source, target)
