"""Files inside one folder, for tools: no path, no link and no race leads out of it."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from cleveragents.domain.changeset import Content, FileMode
from cleveragents.domain.errors import RequestError, SandboxError
from cleveragents.domain.net_change import FileVersion
from cleveragents.domain.paths import check_inside_path, escape
from cleveragents.infrastructure.sandbox.confined_walk import (
    ConfinedWalk,
    check_target,
    link_target,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

__all__ = ["FILE_BYTES_MAX", "ConfinedTree", "Entry", "EntryKind", "is_temporary"]

#: Larger files are not for tools; a caller may allow more.
FILE_BYTES_MAX: Final = 100_000_000
# A pipe must not make us wait, a terminal not become ours, a link not be followed.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_TEMPORARY: Final = re.compile(r"\.cleveragents-[0-9a-f]{16}\.tmp")


class EntryKind(StrEnum):
    """What a name in a folder stands for."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    #: A pipe, a socket or a device: tools have no access to it.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder; a link is told as a link, wherever it leads."""

    name: str
    kind: EntryKind


def is_temporary(name: str) -> bool:
    """Tell whether a file name is that of a write under way, or of one that a crash cut short."""
    return _TEMPORARY.fullmatch(name) is not None


class ConfinedTree:
    """The files of one folder, by relative paths with `/`; any number of threads may share it.

    Every folder on a path is opened by descriptor, without following links, and links are
    followed by hand: so nothing outside is read or written, whoever swaps what for a link
    meanwhile. What leads out is refused with CA5001, what is missing or of the wrong kind
    with CA5007. A file is replaced as a whole: of two writers the last wins, and a reader
    sees one of both. `close` waits for nobody: calls under way end as if it came after them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()  # guards: _root
        try:
            self._root: int | None = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise _failure(str(folder), error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the descriptor; every later call is refused with CA5004."""
        with self._lock:
            root, self._root = self._root, None
        if root is not None:
            os.close(root)

    def read(self, path: str, *, size_bytes_max: int = FILE_BYTES_MAX) -> bytes:
        """Return what a file holds; links that stay inside are followed."""
        with self._at(path) as (folder, name):
            return _read(path, folder, name, size_bytes_max)[0]

    def version(self, path: str, *, size_bytes_max: int = FILE_BYTES_MAX) -> FileVersion | None:
        """Return content and mode of a file, or None; a link is told as itself, by its target."""
        try:
            with self._at(path, follow=False) as (folder, name):
                target = link_target(folder, name)
                if target is not None:
                    return FileVersion(path, Content(os.fsencode(target)), FileMode.SYMLINK)
                data, found = _read(path, folder, name, size_bytes_max)
        except SandboxError as error:
            if _is_gone(error):
                return None
            raise
        return FileVersion(path, Content(data), FileMode(found.st_mode))

    def write(self, path: str, data: bytes, mode: FileMode | None = None) -> None:
        """Create or replace a file in one step, with the folders above it.

        Without a mode, a file keeps its permissions. Through a link, its target is written.
        """
        _check_file_mode(mode)
        with self._at(path, create=True) as (folder, name):
            replaced = _replaceable(path, folder, name)
            with _put_in_place(folder, name) as temporary:
                created = os.open(temporary, _CREATE, 0o666, dir_fd=folder)
                with os.fdopen(created, "wb") as file:
                    file.write(data)
                    before = replaced or os.fstat(created)
                    os.fchmod(created, _permissions(before.st_mode, mode))

    def link(self, path: str, target: str) -> None:
        """Create or replace a symbolic link; its target is relative to the link's folder."""
        check_target(path, target)
        with self._at(path, follow=False, create=True) as (folder, name):
            self._check_inside("/".join([*path.split("/")[:-1], target]))
            _replaceable(path, folder, name)
            with _put_in_place(folder, name) as temporary:
                os.symlink(target, temporary, dir_fd=folder)

    def remove(self, path: str) -> None:
        """Remove a file, or a link itself."""
        with self._at(path, follow=False) as (folder, name):
            if _replaceable(path, folder, name) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            os.unlink(name, dir_fd=folder)

    def rename(self, old: str, new: str) -> None:
        """Move a file, a link or a folder; a file that is at `new` is replaced."""
        for path in (old, new):
            check_inside_path(path)
            self._check_inside(path)
        with self._at(old, follow=False) as (folder, name):
            moved = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if _kind(moved.st_mode) is EntryKind.OTHER:
                raise _wrong_kind(old, EntryKind.OTHER)
            with self._at(new, follow=False, create=True) as (new_folder, new_name):
                _replaceable(new, new_folder, new_name)
                os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder)

    def set_mode(self, path: str, mode: FileMode) -> None:
        """Make a file executable or not; whoever may read it may then execute it."""
        _check_file_mode(mode)
        with self._at(path) as (folder, name):
            file = _open_file(path, folder, name)
            try:
                found = os.fstat(file)
                # Another name of the same file may be outside: only this one shall change.
                if found.st_nlink == 1:
                    os.fchmod(file, _permissions(found.st_mode, mode))
                    return
            finally:
                os.close(file)
        self.write(path, self.read(path), mode)

    def make_executable(self, path: str) -> None:
        """Make a file executable for all who may read it."""
        self.set_mode(path, FileMode.EXECUTABLE)

    def list(self, path: str = ".") -> tuple[Entry, ...]:
        """Return what is in a folder, in the order of the names; `.git` is not told."""
        if path != ".":
            check_inside_path(path)
        with self._walk(path) as walk:
            walk.to_folder()
            return _entries(walk.folder)

    def walk(self) -> Iterator[str]:
        """Yield the paths of all files and links, folder by folder in the order of the names.

        Links are not followed, and `.git` is skipped. What vanishes meanwhile is left out.
        """
        waiting = [(".", EntryKind.FOLDER)]
        while waiting:
            path, kind = waiting.pop()
            if kind is not EntryKind.FOLDER:
                yield path
                continue
            prefix = "" if path == "." else f"{path}/"
            waiting += [
                (prefix + entry.name, entry.kind)
                for entry in reversed(self._list_to_walk(path))
                if entry.kind is not EntryKind.OTHER
            ]

    def _list_to_walk(self, path: str) -> tuple[Entry, ...]:
        try:
            # The names were found, not asked for: whatever they are, they are walked.
            with self._walk(path, follow_folders=False) as walk:
                walk.to_folder()
                return _entries(walk.folder)
        except SandboxError as error:
            if _is_gone(error):
                return ()
            raise

    @contextmanager
    def _at(
        self, path: str, *, follow: bool = True, create: bool = False
    ) -> Iterator[tuple[int, str]]:
        """Go to a file; give the open folder that it is in and its name there."""
        check_inside_path(path)
        with self._walk(path) as walk:
            name = walk.to_name(follow=follow, create=create)
            yield walk.folder, name

    def _check_inside(self, path: str) -> None:
        """Refuse a path whose links, or whose missing parts, lead out."""
        with self._walk(path) as walk:
            walk.to_end()

    @contextmanager
    def _walk(self, path: str, *, follow_folders: bool = True) -> Iterator[ConfinedWalk]:
        # A descriptor of our own: `close` may give the tree's one away at any moment.
        with self._lock:
            root = None if self._root is None else os.dup(self._root)
        if root is None:
            raise SandboxError(
                f"The sandbox `{self.folder}` is closed", code="CA5004", facts={"path": path}
            )
        try:
            with ConfinedWalk(root, path, follow_folders=follow_folders) as walk:
                yield walk
        except OSError as error:
            raise _failure(path, error) from error
        finally:
            os.close(root)


@contextmanager
def _put_in_place(folder: int, name: str) -> Iterator[str]:
    """Give a free name to create a file at; then put that over `name` in one step."""
    temporary = f".cleveragents-{secrets.token_hex(8)}.tmp"
    try:
        yield temporary
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _open_file(path: str, folder: int, name: str) -> int:
    file = os.open(name, _READ, dir_fd=folder)
    kind = _kind(os.fstat(file).st_mode)
    if kind is not EntryKind.FILE:
        os.close(file)
        raise _wrong_kind(path, kind)
    return file


def _read(path: str, folder: int, name: str, size_bytes_max: int) -> tuple[bytes, os.stat_result]:
    with os.fdopen(_open_file(path, folder, name), "rb") as file:
        found = os.fstat(file.fileno())
        data = b"" if found.st_size > size_bytes_max else file.read(found.st_size + 1)
        if len(data) > found.st_size:
            # It grows meanwhile; one byte more than allowed tells.
            data += file.read(size_bytes_max + 1 - len(data))
    if max(len(data), found.st_size) > size_bytes_max:
        raise SandboxError(
            f"The file {path!r} has more than {size_bytes_max} bytes",
            code="CA5007",
            facts={"path": path, "size_bytes": found.st_size, "size_bytes_max": size_bytes_max},
            hint="Allow more by `size_bytes_max`, or read it by a command",
        )
    return data, found


def _entries(folder: int) -> tuple[Entry, ...]:
    with os.scandir(folder) as found:
        return tuple(
            sorted(
                (
                    Entry(one.name, _kind_of(one))
                    for one in found
                    if one.name != ".git" and not is_temporary(one.name)
                ),
                key=lambda entry: entry.name,
            )
        )


def _kind_of(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_symlink():
        return EntryKind.LINK
    if entry.is_dir(follow_symlinks=False):
        return EntryKind.FOLDER
    return EntryKind.FILE if entry.is_file(follow_symlinks=False) else EntryKind.OTHER


def _kind(mode: int) -> EntryKind:
    kinds = {
        stat.S_IFREG: EntryKind.FILE,
        stat.S_IFDIR: EntryKind.FOLDER,
        stat.S_IFLNK: EntryKind.LINK,
    }
    return kinds.get(stat.S_IFMT(mode), EntryKind.OTHER)


def _replaceable(path: str, folder: int, name: str) -> os.stat_result | None:
    """Return what is at a name, None for nothing; refuse all but files and links."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    kind = _kind(found.st_mode)
    if kind not in {EntryKind.FILE, EntryKind.LINK}:
        raise _wrong_kind(path, kind)
    return found


def _permissions(before: int, mode: FileMode | None) -> int:
    """Return permissions with the mode in them; whoever may read may then execute."""
    permissions = before & 0o777
    if mode is FileMode.EXECUTABLE:
        return permissions | (permissions & 0o444) >> 2
    return permissions & ~0o111 if mode is FileMode.REGULAR else permissions


def _check_file_mode(mode: FileMode | None) -> None:
    if mode is FileMode.SYMLINK:
        raise RequestError(
            "The mode of a file must be REGULAR or EXECUTABLE, got SYMLINK",
            hint="Make a symbolic link by `link(path, target)`",
        )


def _is_gone(error: SandboxError) -> bool:
    return isinstance(error.__cause__, FileNotFoundError | NotADirectoryError)


def _wrong_kind(path: str, kind: EntryKind) -> SandboxError:
    what = "a pipe, a socket or a device" if kind is EntryKind.OTHER else f"a {kind}"
    return SandboxError(
        f"A file is asked for, and {path!r} is {what}",
        code="CA5007",
        facts={"path": path, "kind": str(kind)},
    )


def _failure(path: str, error: OSError) -> SandboxError:
    if error.errno == errno.ELOOP:
        # Looked at a moment ago, it was none: somebody else put it there.
        return escape(path, "must not be replaced by a link while it is used")
    reason = os.strerror(error.errno or errno.EIO)
    return SandboxError(
        f"The file {path!r} of a sandbox cannot be used: {reason}",
        code="CA5007",
        facts={"path": path, "reason": reason},
    )
