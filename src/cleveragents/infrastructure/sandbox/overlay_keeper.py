"""The keeper of overlay mounts: a small process with a user and mount namespace of its own.

It is run as a program, in the folder that all paths are relative to, and needs nothing of ours.
Requests and answers are lines of JSON on its standard input and output:
`["mount", lowers, upper, work, target]` and `["unmount", target]`, answered by `null` or an error.
It ends with its input, and with it every mount: a killed parent leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_CLONE_NEWNS: Final = 0x00020000
_CLONE_NEWUSER: Final = 0x10000000
_MS_NOSUID: Final = 0x2
_MS_NODEV: Final = 0x4
_MS_REC: Final = 0x4000
_MS_PRIVATE: Final = 0x40000
_MNT_DETACH: Final = 0x2

#: Folders are renamed by copying, so that the upper folder alone tells what was written.
_OPTIONS: Final = "userxattr,redirect_dir=nofollow,index=off,metacopy=off"


class System(Protocol):
    """The calls of the C library that are needed; each returns 0, or sets `errno`."""

    def unshare(self, flags: int, /) -> int:
        """Leave namespaces for new ones."""
        ...

    def mount(self, *arguments: bytes | int | None) -> int:
        """Mount a file system."""
        ...

    def umount2(self, target: bytes, flags: int, /) -> int:
        """Unmount a file system."""
        ...


def enter(system: System, process: str = "/proc/self") -> None:
    """Leave for namespaces of our own, as the same user and group as before."""
    user, group = os.geteuid(), os.getegid()
    _do("unshare", system.unshare(_CLONE_NEWUSER | _CLONE_NEWNS))
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, text in maps.items():
        with open(f"{process}/{name}", "w", encoding="ascii") as file:  # noqa: PTH123  # quick start
            file.write(text)
    _do("mount", system.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))


def serve(system: System, requests: Iterable[str], answers: TextIO) -> None:
    """Answer requests until they end."""
    verbs: dict[str, Callable[..., None]] = {"mount": mount, "unmount": unmount}
    for line in requests:
        verb, *arguments = json.loads(line)
        _answer(answers, partial(verbs[verb], system, *arguments))


def mount(system: System, lowers: list[str], upper: str, work: str, target: str) -> None:
    """Mount an overlay, the topmost of its lower folders first, unless it is mounted already."""
    if os.path.ismount(target):
        return
    options = f"lowerdir={':'.join(lowers)},upperdir={upper},workdir={work},{_OPTIONS}"
    # Without waiting for the disk at each copy, where the kernel knows how (5.10): nothing that
    # was not sealed is promised to survive a power cut, and a killed process loses nothing.
    done = _mount_overlay(system, target, f"{options},volatile")
    if done != 0 and ctypes.get_errno() == errno.EINVAL:
        done = _mount_overlay(system, target, options)
    _do("mount", done)


def _mount_overlay(system: System, target: str, options: str) -> int:
    flags, kind = _MS_NOSUID | _MS_NODEV, b"overlay"
    return system.mount(kind, target.encode(), kind, flags, options.encode())


def unmount(system: System, target: str) -> None:
    """Unmount what is there, also while a command still uses it; nothing there is fine."""
    done = system.umount2(target.encode(), _MNT_DETACH)
    if done != 0 and ctypes.get_errno() not in {errno.EINVAL, errno.ENOENT}:
        _do("umount", done)


def _do(what: str, done: int) -> None:
    if done != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _answer(answers: TextIO, work: Callable[[], None]) -> bool:
    """Do something, say in one line how that went, and tell whether it went well."""
    try:
        work()
        said = None
    except OSError as error:
        said = str(error)
    answers.write(json.dumps(said) + "\n")
    answers.flush()
    return said is None


def main(system: System, requests: Iterable[str], answers: TextIO) -> None:
    """Enter, and serve if that worked."""
    if _answer(answers, partial(enter, system)):
        serve(system, requests, answers)


if __name__ == "__main__":
    main(ctypes.CDLL(None, use_errno=True), sys.stdin, sys.stdout)
