"""Deleting a folder for good: read-only or thousands deep, never through a link or a mount."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def erase(folder: Path) -> None:
    """Delete a folder and all it holds; absent is fine, and so is somebody who deletes it too.

    Folders inside are moved up before they are emptied, so depth costs nothing.
    A mount point can be neither moved nor removed: it stops the deletion with an `OSError`.
    """
    token = secrets.token_hex(4)
    with suppress(FileNotFoundError), _opened(os.fspath(folder), None) as top:
        count = 0
        while True:
            for name in os.listdir(top):  # noqa: PTH208  # of a folder that is held open
                count = _remove(name, top, f".{token}", count)
            try:
                folder.rmdir()
            except OSError as error:
                # Somebody else may have moved a folder up in the meantime.
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
            else:
                return


def _remove(name: str, top: int, token: str, count: int) -> int:
    """Delete one entry of the top folder; what it holds of folders is moved up beside it."""
    with suppress(FileNotFoundError):
        if not _is_folder(name, top):
            os.unlink(name, dir_fd=top)
            return count
        with _opened(name, top) as folder:
            for inside in os.listdir(folder):  # noqa: PTH208  # as above
                with suppress(FileNotFoundError):
                    if _is_folder(inside, folder):
                        count += 1
                        _move_up(inside, folder, f"{token}-{count}", top)
                    else:
                        os.unlink(inside, dir_fd=folder)
        os.rmdir(name, dir_fd=top)
    return count


def _move_up(name: str, folder: int, new: str, top: int) -> None:
    def move() -> None:
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)

    try:
        move()
    except PermissionError:
        # A folder that is moved is written to: its entry `..` changes.
        _make_ours(name, folder)
        move()


@contextmanager
def _opened(name: str, parent: int | None) -> Iterator[int]:
    """Open a folder that may not even be readable, and make it ours to change."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        _make_ours(name, parent)
        folder = os.open(name, _FOLDER, dir_fd=parent)
    try:
        os.fchmod(folder, stat.S_IRWXU)
        yield folder
    finally:
        os.close(folder)


def _make_ours(name: str, parent: int | None) -> None:
    if not hasattr(os, "O_PATH"):
        os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)
        return
    # A handle needs no permission, and what it points to cannot be exchanged for a link.
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)  # noqa: PTH101  # no path of a user
    finally:
        os.close(handle)


def _is_folder(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode)
