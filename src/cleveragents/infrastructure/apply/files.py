"""The file system as an apply sees it: every call that can fail passes here, so tests can fail it.

Files are named by an open folder and a name in it. So nobody can turn a path into another place
by a symbolic link between two calls.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cleveragents.infrastructure.apply import native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: A name in an open folder.
Place: TypeAlias = tuple[int, str]


class Rights(NamedTuple):
    """Who may do what with a new file; without an owner it is ours, and the umask cuts its mode."""

    mode: int
    owner: tuple[int, int] | None = None


_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe in the place of a file is empty; without this it would keep us waiting.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# On macOS a plain fsync leaves the data in the drive's own memory.
_FULL_FSYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
# Not those that vouch for a content, such as capabilities and signatures.
_KEPT: Final = ("user.", "system.posix_acl_access", "security.selinux")
# Refused, not known here, or gone in the meantime.
_NOT_GIVEN: Final = frozenset({errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENODATA})


class Files:
    """Thin calls; `fault` hears `call:NAME` before each of them, and the named points between."""

    def __init__(self, fault: Callable[[str], object] | None = None) -> None:
        self._fault = fault

    def reach(self, point: str) -> None:
        """Tell a test where we are; it may raise, or kill the process."""
        if self._fault is not None:
            self._fault(point)

    def open_folder(self, place: Place) -> int:
        """Open a folder itself, never one that a symbolic link leads to."""
        self.reach("call:open-folder")
        return os.open(place[1], _FOLDER, dir_fd=place[0])

    def status(self, place: Place) -> os.stat_result | None:
        """Look at what is there, a link itself included; None when nothing is."""
        self.reach("call:status")
        try:
            return os.stat(place[1], dir_fd=place[0], follow_symlinks=False)
        except FileNotFoundError:
            return None

    def names(self, folder: int) -> list[str]:
        """List a folder."""
        self.reach("call:names")
        return os.listdir(folder)

    def read(self, place: Place) -> bytes | None:
        """Read a small file; None when it is not there."""
        self.reach("call:read")
        try:
            handle = os.open(place[1], _READ, dir_fd=place[0])
        except FileNotFoundError:
            return None
        with os.fdopen(handle, "rb") as file:
            return file.read()

    def write(
        self, place: Place, data: bytes, rights: Rights, *, durable: bool = False
    ) -> os.stat_result:
        """Make a new file; where nothing flushes a file system at once, each is made durable."""
        self.reach("call:create")
        handle = os.open(place[1], _NEW, rights.mode, dir_fd=place[0])
        try:
            rest = memoryview(data)
            while rest:
                self.reach("call:write")
                rest = rest[os.write(handle, rest) :]
            written = os.fstat(handle)
            if rights.owner is not None:
                self._keep_rights(handle, rights.mode, rights.owner, written)
            if durable or native.function("syncfs") is None:
                self.flush(handle)
            return written
        finally:
            os.close(handle)

    def keep_attributes(self, old: Place, new: Place) -> None:
        """Give a new file what is kept beside the content of an old one, such as access lists.

        What we may not give is let go, and so is what vouches for the old content.
        """
        self.reach("call:attributes")
        source, target = _by_handle(old), _by_handle(new)
        names = [one for one in _attributes(source) if one.startswith(_KEPT)]
        if not names:
            return
        mode = stat.S_IMODE(os.stat(new[1], dir_fd=new[0], follow_symlinks=False).st_mode)
        for name in names:
            try:
                value = os.getxattr(source, name, follow_symlinks=False)
                os.setxattr(target, name, value, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NOT_GIVEN:
                    raise
        # An access list brings the bits of the old file with it.
        os.chmod(new[1], mode, dir_fd=new[0])

    def append(self, place: Place, data: bytes) -> None:
        """Add to a small file, durably."""
        self.reach("call:append")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(place[1], flags, 0o600, dir_fd=place[0])
        try:
            os.write(handle, data)
            self.flush(handle)
            self.flush(place[0])
        finally:
            os.close(handle)

    def link_to(self, place: Place, target: bytes, rights: Rights) -> os.stat_result:
        """Make a symbolic link; its owner is kept when we may."""
        self.reach("call:symlink")
        os.symlink(target, os.fsencode(place[1]), dir_fd=place[0])
        made = os.stat(place[1], dir_fd=place[0], follow_symlinks=False)
        if rights.owner not in {None, (made.st_uid, made.st_gid)}:
            with suppress(PermissionError):
                os.chown(place[1], *rights.owner, dir_fd=place[0], follow_symlinks=False)
        return made

    def restore_rights(self, folder: int, mode: int, owner: tuple[int, int]) -> None:
        """Give an open folder the rights that it had."""
        self._keep_rights(folder, mode, owner, os.fstat(folder))

    def _keep_rights(
        self, handle: int, mode: int, owner: tuple[int, int], now: os.stat_result
    ) -> None:
        if (now.st_uid, now.st_gid) != owner:
            self.reach("call:chown")
            try:
                os.fchown(handle, *owner)
            except PermissionError:
                # Under another owner these bits would lend rights that nobody gave.
                mode &= ~(stat.S_ISUID | stat.S_ISGID)
        if stat.S_IMODE(os.fstat(handle).st_mode) != mode:
            self.reach("call:chmod")
            os.fchmod(handle, mode)

    def make_folder(self, place: Place) -> bool:
        """Make a folder; False when something is there already."""
        self.reach("call:make-folder")
        try:
            os.mkdir(place[1], dir_fd=place[0])
        except FileExistsError:
            return False
        return True

    def remove_folder(self, place: Place) -> None:
        """Remove an empty folder."""
        self.reach("call:remove-folder")
        os.rmdir(place[1], dir_fd=place[0])

    def remove(self, place: Place) -> None:
        """Remove a file."""
        self.reach("call:remove")
        os.unlink(place[1], dir_fd=place[0])

    def move(self, source: Place, target: Place) -> None:
        """Rename, and replace what is there."""
        self.reach("call:move")
        os.rename(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])

    def move_new(self, source: Place, target: Place) -> None:
        """Rename to a name that must be free: `FileExistsError` when it is not."""
        self.reach("call:move-new")
        if native.rename(source, target, native.NO_REPLACE):
            return
        try:
            _link(source, target)
        except FileExistsError:
            # Linked before a crash, and not yet removed from its old name?
            if not self.same(source, target):
                raise
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if self.status(target) is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            self.move(source, target)
            return
        self.remove(source)

    def exchange(self, one: Place, other: Place) -> bool:
        """Swap two files in one step; False when this file system cannot."""
        self.reach("call:exchange")
        return native.rename(one, other, native.EXCHANGE)

    def hold(self, source: Place, target: Place) -> None:
        """Keep a file under a second name, or under that name alone where links are refused."""
        self.reach("call:hold")
        try:
            _link(source, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self.move(source, target)

    def flush(self, handle: int) -> None:
        """Make one file or folder durable."""
        self.reach("call:flush")
        if _FULL_FSYNC is None:
            os.fsync(handle)
        else:
            fcntl.fcntl(handle, _FULL_FSYNC)

    def flush_whole(self, folders: Iterable[int]) -> bool:
        """Make all on the file systems of these folders durable; False where no call does that."""
        for folder in folders:
            self.reach("call:flush-whole")
            if not native.sync_file_system(folder):
                return False
        return True

    def same(self, one: Place, other: Place) -> bool:
        """Say whether two names are those of one file."""
        first, second = self.status(one), self.status(other)
        return first is not None and second is not None and os.path.samestat(first, second)


def _by_handle(place: Place) -> str:
    """Spell a place as a path: attributes cannot be asked for by a folder's handle."""
    return f"/proc/self/fd/{place[0]}/{place[1]}"


def _attributes(path: str) -> list[str]:
    """Return the names of a file's attributes; none where the system has none, or no such path."""
    with suppress(OSError, AttributeError):
        return os.listxattr(path, follow_symlinks=False)
    return []


def _link(source: Place, target: Place) -> None:
    os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)
