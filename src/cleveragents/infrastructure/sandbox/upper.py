"""What was written into an overlay, read from its upper folder alone.

Deleted files are character devices 0:0 there, and a folder that was made anew is marked opaque.
The answer may name a file too many, never one too few: whoever asked compares the contents.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

#: How overlays that need no privilege mark a folder that hides what is below it.
OPAQUE: Final = "user.overlay.opaque"


def touched_paths(upper: Path, lowers: Iterable[Path]) -> tuple[str, ...]:
    """Return every file path that may differ from what the lower folders show, sorted."""
    found: set[str] = set()
    waiting = [("", os.fspath(upper), [os.fspath(lower) for lower in lowers])]
    while waiting:
        path, folder, below = waiting.pop()
        with _scanned(folder) as entries:
            for entry in entries:
                name = path + entry.name
                under = [f"{lower}/{entry.name}" for lower in below]
                if entry.is_dir(follow_symlinks=False):
                    hidden, shown = _below_folder(entry.path, under)
                    waiting.append((f"{name}/", entry.path, shown))
                else:
                    hidden = under
                    found.add(name)
                for place in hidden:
                    found.update(name + rest for rest in _files_at(place))
    return tuple(sorted(found))


def closed_folders(upper: Path, shown: Path) -> tuple[str, ...]:
    """Let us into every folder of an attempt, and return those that stay closed to us.

    Rights are changed where the files are shown: a mount does not see what is done below it.
    """
    closed = []
    waiting = [""]
    while waiting:
        path = waiting.pop()
        try:
            _let_us_in(f"{shown}/{path}")
            with os.scandir(f"{upper}/{path}") as entries:
                waiting += [
                    path + one.name + "/" for one in entries if one.is_dir(follow_symlinks=False)
                ]
        except OSError as error:
            if not is_closed(error):
                raise
            closed.append(path.removesuffix("/"))
    return tuple(sorted(closed))


def is_closed(error: OSError) -> bool:
    """Say whether a failure will be the same next time; of any other, trying again is the cure."""
    return error.errno in {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG}


def _let_us_in(folder: str) -> None:
    mode = stat.S_IMODE(os.lstat(folder).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(folder, mode | stat.S_IRWXU)  # noqa: PTH101  # a plain string


@contextmanager
def _scanned(folder: str) -> Iterator[Iterable[os.DirEntry[str]]]:
    """Give what is in a folder; of one that is closed to us, `closed_folders` tells."""
    try:
        found = os.scandir(folder)
    except OSError as error:
        if not is_closed(error):
            raise
        yield ()
        return
    with found:
        yield found


def _below_folder(folder: str, under: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tell apart what a folder hides of the places below it, and what shows through."""
    shown = [place for place in under if _is_folder(place)]
    hidden = [place for place in under if place not in shown]
    if shown and _is_opaque(folder):
        return [*hidden, *shown], []
    return hidden, shown


def _files_at(place: str) -> Iterator[str]:
    """Return `""` for a file, and `/` with the path below it for each file of a folder."""
    if not _is_folder(place):
        if os.path.lexists(place):
            yield ""
        return
    waiting = [place]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry.path[len(place) :]


def _is_folder(place: str) -> bool:
    # Never through a link: it may lead out of the snapshot.
    try:
        return stat.S_ISDIR(os.lstat(place).st_mode)
    except OSError:
        return False


def _is_opaque(folder: str) -> bool:
    try:
        return os.getxattr(folder, OPAQUE, follow_symlinks=False) == b"y"
    except OSError:
        return False
