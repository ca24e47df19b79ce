"""The way from the root of a tree to a file in it, link by link and folder by folder."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cleveragents.domain.paths import check_inside_path, escape

if TYPE_CHECKING:
    from typing import Self

__all__ = ["ConfinedWalk", "check_target", "link_target"]

#: As many as Linux follows.
_LINKS_MAX: Final = 40
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class ConfinedWalk:
    """One walk by one thread; the folder it stands in is held open until the `with` ends.

    It opens each folder relative to the one before, never following a link, and goes back
    only to folders that it came through: so it cannot leave the root, whoever moves what.
    What is missing raises `OSError`, what leads out CA5001.
    """

    def __init__(self, root: int, path: str, *, follow_folders: bool = True) -> None:
        #: Where the walk stands.
        self.folder = os.dup(root)
        self._root = root  # the caller's, and open as long as the walk lasts
        self._path = path
        self._follow_folders = follow_folders
        self._links_left = _LINKS_MAX
        self._names: list[str] = []
        # What is still to go, the next part last.
        self._parts = path.split("/")[::-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.folder)

    def to_name(self, *, follow: bool, create: bool = False) -> str:
        """Go to the folder of the last name and return the name: that of a link unless `follow`.

        `.` is returned for a path that turns out to be a folder that the walk went through.
        """
        while self._parts:
            name = self._parts.pop()
            if name == "..":
                self._go_back()
            elif name in {"", "."}:
                continue
            elif self._parts:
                self._enter(name, create=create)
            else:
                target = link_target(self.folder, name) if follow else None
                if target is None:
                    return name
                self._follow(target)
        return "."

    def to_folder(self) -> None:
        """Go into the folder that the path names."""
        self._parts.insert(0, ".")
        self.to_name(follow=True)

    def to_end(self) -> None:
        """Go as far as the path is there; refuse it if it leads out, missing parts included."""
        try:
            self.to_name(follow=True)
        except FileNotFoundError:
            depth = len(self._names) + 1  # in the folder that is missing, were it there
            while self._parts and depth >= 0:
                name = self._parts.pop()
                depth += {"..": -1, ".": 0, "": 0}.get(name, 1)
            if depth < 0:
                raise escape(self._path, "leads out of the sandbox") from None

    def _enter(self, name: str, *, create: bool) -> None:
        try:
            self._stand_in(self._open(name, create=create))
        except OSError as error:
            # A link answers ENOTDIR on Linux and ELOOP elsewhere.
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            target = link_target(self.folder, name) if self._follow_folders else None
            if target is None:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error
            self._follow(target)
        else:
            self._names.append(name)

    def _open(self, name: str, *, create: bool) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=self.folder)
        except FileNotFoundError:
            if not create:
                raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=self.folder)
        return os.open(name, _FOLDER, dir_fd=self.folder)

    def _follow(self, target: str) -> None:
        if self._links_left == 0:
            raise escape(self._path, f"goes through more than {_LINKS_MAX} links")
        self._links_left -= 1
        check_target(self._path, target)
        self._parts += target.split("/")[::-1]

    def _go_back(self) -> None:
        """Leave the folder for the one above, by the names that led here.

        Keeping each folder open instead would cost a descriptor for every folder of a path.
        """
        if not self._names:
            raise escape(self._path, "leads out of the sandbox")
        self._parts += self._names[-2::-1]
        self._names.clear()
        self._stand_in(os.dup(self._root))

    def _stand_in(self, folder: int) -> None:
        os.close(self.folder)
        self.folder = folder


def link_target(folder: int, name: str) -> str | None:
    """Return where a link leads; None for anything else, also for what is not there."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        # EINVAL: there is something, and it is no link.
        if error.errno in {errno.EINVAL, errno.ENOENT}:
            return None
        raise


def check_target(path: str, target: str) -> None:
    """Refuse with CA5001 a link that leads out by its very target; `..` is for a walk to judge."""
    if not target or target.startswith("/"):
        raise escape(path, f"must be no link to {target!r}, which is not relative")
    for name in target.split("/"):
        if name not in {"", ".", ".."}:
            check_inside_path(name)
