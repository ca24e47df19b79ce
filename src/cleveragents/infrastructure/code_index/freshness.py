"""Which files a tree has now, and which of them may have changed since they were read."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.application.source_tree import (
    FILE_BYTES_MAX,
    OPEN_FLAGS,
    Rules,
    is_ignored,
    rules_above,
    rules_of,
)
from cleveragents.domain.fragment import is_relative

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["Folder", "Mark", "Survey", "is_settled", "read", "survey"]

#: No file system that keeps parts of seconds has a coarser clock.
_TICK_NS: Final = 50_000_000
#: Some keep whole seconds, and one of them only every second one.
_COARSE_TICK_NS: Final = 2_100_000_000
_SECOND_NS: Final = 1_000_000_000


class Mark(NamedTuple):
    """What a content cannot change without, once it is older than the clock's tick."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def _mark(status: os.stat_result) -> Mark:
    # Thousands for each look at a tree: the constructor by names takes twice as long.
    return _new(Mark, (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))


_new: Final = tuple.__new__


def is_settled(mark: Mark, now_ns: int) -> bool:
    """Say whether a change from now on must give another mark.

    A file that was written in this very tick may be written again without one.
    """
    # Whoever sets the modification time, even into the future, sets the change time to now.
    newest = mark.ctime_ns if mark.mtime_ns > now_ns else max(mark.mtime_ns, mark.ctime_ns)
    whole = mark.ctime_ns % _SECOND_NS == 0 and mark.mtime_ns % _SECOND_NS == 0
    return newest + (_COARSE_TICK_NS if whole else _TICK_NS) < now_ns


class Folder(NamedTuple):
    """What one folder held when it was listed; true as long as its mark is the same."""

    mark: Mark
    settled: bool
    #: Those from above that it was listed by.
    above: tuple[Rules, ...]
    #: Those that hold inside.
    rules: tuple[Rules, ...]
    #: The mark of its `.gitignore`; None without one.
    ignores: Mark | None
    files: tuple[str, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """The files of a tree with their marks, and the folders, to be given to the next survey."""

    files: Mapping[str, Mark]
    folders: Mapping[str, Folder]
    #: The rules from outside the root.
    above: tuple[Rules, ...] = ()
    #: Whether there are more files than were asked for.
    cut: bool = False


EMPTY: Final = Survey({}, {})


def survey(root: str, before: Survey, now_ns: int, stop: StopSignal, *, files_max: int) -> Survey:
    """Look at every file; folders that did not change since the survey before are not listed.

    `now_ns` is the wall clock's time before the call.
    The files are those of `walk`: what git would show.
    """
    home = Path(root)
    top, above = rules_above(home)
    if above == before.above:
        above = before.above  # the same object, so that equality costs nothing below
    base = "" if top == home else f"{home.relative_to(top).as_posix()}/"
    files: dict[str, Mark] = {}
    folders: dict[str, Folder] = {}
    todo = [("", above)]
    lstat, is_file = os.lstat, stat.S_ISREG
    while todo:
        stop.raise_if_stopped()
        name, rules = todo.pop()
        folder = _folder(f"{root}/{name}", base + name, rules, before.folders.get(name), now_ns)
        if folder is None:
            continue
        folders[name] = folder
        prefix = f"{root}/{name}"
        for file in folder.files:
            # As `_file_mark`, without a call for each of thousands.
            try:
                status = lstat(prefix + file)
            except OSError:  # vanished meanwhile
                continue
            if is_file(status.st_mode):
                files[name + file] = _mark(status)
        if len(files) > files_max:
            first = sorted(files)[:files_max]
            return Survey({path: files[path] for path in first}, folders, above, cut=True)
        todo += [(f"{name}{one}/", folder.rules) for one in reversed(folder.folders)]
    return Survey(files, folders, above)


def _file_mark(path: str) -> Mark | None:
    try:
        status = os.lstat(path)
    except OSError:  # vanished meanwhile
        return None
    return _mark(status) if stat.S_ISREG(status.st_mode) else None


def _folder(
    path: str, inside: str, above: tuple[Rules, ...], before: Folder | None, now_ns: int
) -> Folder | None:
    """Return the folder as it is; `inside` names it from the top of the repository."""
    try:
        mark = _mark(os.lstat(path))
        if (
            before is not None
            and before.settled
            and before.mark == mark
            and before.above is above
            # A new file in it would have changed its mark.
            and (before.ignores is None or before.ignores == _file_mark(f"{path}.gitignore"))
        ):
            return before
        with os.scandir(path) as entries:
            kinds = {
                entry.name: entry.is_dir(follow_symlinks=False)
                for entry in entries
                if not entry.is_symlink() and entry.name != ".git" and is_relative(entry.name)
            }
    except OSError:  # vanished, or not ours to read
        return None
    ignores = _file_mark(f"{path}.gitignore")
    own = None if ignores is None else rules_of(inside, Path(f"{path}.gitignore"))
    rules = above if own is None else (own, *above)
    if before is not None and rules == before.rules:
        rules = before.rules
    files = sorted(one for one, is_folder in kinds.items() if not is_folder)
    folders = sorted(one for one, is_folder in kinds.items() if is_folder)
    return Folder(
        mark,
        is_settled(mark, now_ns) and (ignores is None or is_settled(ignores, now_ns)),
        above,
        rules,
        ignores,
        tuple(one for one in files if not is_ignored(inside + one, rules)),
        tuple(one for one in folders if not is_ignored(f"{inside}{one}/", rules)),
    )


def read(path: str, now_ns: int) -> tuple[bytes, Mark, bool] | None:
    """Return a file's bytes, its mark, and whether the mark is settled; None if it is gone.

    A file over `FILE_BYTES_MAX` gives one byte more than that at most.
    """
    try:
        descriptor = os.open(path, OPEN_FLAGS)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None
            content = stream.read(FILE_BYTES_MAX + 1)
            after = _mark(os.fstat(descriptor))
    except (OSError, ValueError):
        return None
    mark = _mark(status)
    return content, mark, mark == after and is_settled(mark, now_ns)
