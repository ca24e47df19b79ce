"""How a tree looks: before an apply is asked for, and again before it is begun."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from cleveragents.domain.paths import check_path, folders_of
from cleveragents.infrastructure.apply import refusals
from cleveragents.infrastructure.apply.files import Files
from cleveragents.infrastructure.apply.folders import Folders, blocker, folders_of_all
from cleveragents.infrastructure.apply.journal import Folder
from cleveragents.infrastructure.apply.target import Signature

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cleveragents.infrastructure.apply.journal import Operation


def signature(root: Path, path: str) -> Signature | None:
    """Look at one path; None when no file is there."""
    return signatures(root, (path,))[0]


def signatures(root: Path, paths: Iterable[str]) -> tuple[Signature | None, ...]:
    """Look at paths, fastest in sorted order; None for each where no file of the tree is.

    What lies behind a symbolic link is not of the tree, and a folder is no file;
    a device or a pipe is refused with CA4108.
    """
    files = Files()
    with Folders.of(files, root) as folders:
        return tuple(_look(files, folders, path) for path in paths)


def _look(files: Files, folders: Folders, path: str) -> Signature | None:
    check_path(path)
    folder, _, name = path.rpartition("/")
    try:
        status = files.status((folders.open(folder), name))
    except FileNotFoundError:
        return None
    except OSError as error:
        blocker(error, folders, folder)
        return None
    return None if status is None else _seen(path, status)


def _seen(path: str, status: os.stat_result) -> Signature | None:
    """Return the signature of a file or a link, None for a folder."""
    if stat.S_ISDIR(status.st_mode):
        return None
    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
        return Signature.of(status)
    raise refusals.no_file(path)


def _is_link(files: Files, folders: Folders, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    status = files.status((folders.open(folder), name))
    return status is not None and stat.S_ISLNK(status.st_mode)


class Survey:
    """Compares a tree with what the caller saw, and finds the folders to make and to remove.

    Nothing is changed. What has changed since the caller looked is refused with CA4102, a folder
    that is a symbolic link with CA5001, anything else in the way with CA4108.
    """

    def __init__(self, files: Files, folders: Folders, operations: tuple[Operation, ...]) -> None:
        self._files = files
        self._folders = folders
        self._operations = operations
        self._gone = {one.path for one in operations if one.after is None}
        # A folder in which something shall be stays, even if all that is in it now goes.
        put = [one.path for one in operations if one.after is not None]
        self._emptied = folders_of_all(self._gone) - folders_of_all(put)
        self._changed: list[str] = []
        self._made: set[str] = set()
        self._removed: dict[str, Folder] = {}

    def run(self) -> tuple[tuple[str, ...], tuple[Folder, ...]]:
        """Return the folders to make and those that may become empty, the outermost first."""
        for one in self._operations:
            try:
                self._look_at(one)
            except OSError as error:
                raise refusals.not_replaced(error, one.path) from error
        if self._changed:
            raise refusals.changed_since(self._changed)
        return tuple(sorted(self._made)), tuple(self._removed[one] for one in sorted(self._removed))

    def _look_at(self, one: Operation) -> None:
        folder, _, name = one.path.rpartition("/")
        handle = self._open(folder)
        if handle is not None:
            self._compare(one, self._files.status((handle, name)))
            if one.after is None:
                self._note_emptied(folder)
        elif one.expected is not None:
            self._changed.append(one.path)

    def _open(self, folder: str) -> int | None:
        """Return a folder's handle, or None after noting that it must be made."""
        if folder in self._made:
            return None
        try:
            return self._folders.open(folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            stopper = blocker(error, self._folders, folder)
            # A file may give way to a folder, and so may a link that is removed itself.
            if stopper not in self._gone:
                if _is_link(self._files, self._folders, stopper):
                    raise refusals.leads_away(stopper) from error
                raise refusals.no_file(stopper, "no folder, but files shall be in it") from error
        depth = len(self._folders.path)
        self._made.update(path for path in folders_of(f"{folder}/") if len(path) > depth)
        return None

    def _compare(self, one: Operation, status: os.stat_result | None) -> None:
        found = None if status is None else _seen(one.path, status)
        if found != one.expected:
            self._changed.append(one.path)
        elif found is None and status is not None:
            if one.path not in self._emptied:
                raise refusals.no_file(one.path, "a folder, and a file shall be there")
            self._check_empties(one.path)

    def _check_empties(self, path: str) -> None:
        """Refuse a folder that shall become a file while it holds more than what goes."""
        for name in self._files.names(self._folders.open(path)):
            inner = f"{path}/{name}"
            if inner in self._emptied:
                self._check_empties(inner)
            elif inner not in self._gone:
                raise refusals.no_file(inner, f"in {path!r}, which shall become a file")

    def _note_emptied(self, folder: str) -> None:
        for path in folders_of(f"{folder}/") if folder else ():
            if path in self._emptied and path not in self._removed:
                status = os.fstat(self._folders.open(path))
                mode = stat.S_IMODE(status.st_mode)
                self._removed[path] = Folder(path, mode, status.st_uid, status.st_gid)
