"""Folders of a tree, opened name by name and never through a symbolic link."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from cleveragents.domain.paths import folders_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

    from cleveragents.infrastructure.apply.files import Files

# What opening a file, or a symbolic link, as a folder answers.
_NO_FOLDER: Final = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EMLINK})


class Folders:
    """A walk through a tree; of one thread.

    Only the folders on the way to the last one stay open: asked in sorted order, each is opened
    once, and a tree of any size needs few handles.
    """

    def __init__(self, files: Files, root: int) -> None:
        self._files = files
        self._handles = [root]
        self._names: list[str] = []
        #: Where the walk stands: after a failure, the deepest folder that it reached.
        self.path = ""

    @classmethod
    def of(cls, files: Files, root: Path) -> Self:
        """Start at the root of a tree, which a symbolic link may lead to."""
        return cls(files, os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._go_up(0)
        os.close(self._handles.pop())

    def open(self, path: str) -> int:
        """Return the handle of a folder, good until the next call; the root is ''."""
        if path == self.path:
            return self._handles[-1]
        names = path.split("/") if path else []
        shared = 0
        for mine, wanted in zip(self._names, names, strict=False):
            if mine != wanted:
                break
            shared += 1
        self._go_up(shared)
        try:
            for name in names[shared:]:
                self._handles.append(self._files.open_folder((self._handles[-1], name)))
                self._names.append(name)
        finally:
            self.path = "/".join(self._names)
        return self._handles[-1]

    def device(self, above: int = 0) -> int:
        """Return the device of the folder where the walk stands, or of one above it."""
        return os.fstat(self._handles[-1 - above]).st_dev

    def mount(self) -> str:
        """Return the outermost folder on the way here that is on the same device."""
        here, above = self.device(), 0
        while above < len(self._names) and self.device(above + 1) == here:
            above += 1
        return "/".join(self._names[: len(self._names) - above])

    def _go_up(self, depth: int) -> None:
        while len(self._names) > depth:
            os.close(self._handles.pop())
            self._names.pop()
        self.path = "/".join(self._names)


def folders_of_all(paths: Iterable[str]) -> set[str]:
    """Return every folder that one of the paths lies in."""
    parents = {path.rpartition("/")[0] for path in paths} - {""}
    return {folder for parent in parents for folder in folders_of(f"{parent}/")}


def blocker(error: OSError, folders: Folders, wanted: str) -> str:
    """Name what stood where a folder was wanted; any other failure is raised again."""
    if error.errno not in _NO_FOLDER:
        raise error
    begun = f"{folders.path}/" if folders.path else ""
    return begun + wanted[len(begun) :].partition("/")[0]
