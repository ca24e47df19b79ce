"""Who may change a tree: one apply at a time, of all threads and processes."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cleveragents.infrastructure.apply import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = "apply.lock"
_PAUSE_S: Final = 0.02


@contextmanager
def tree_lock(home: int, wait_s: float) -> Iterator[None]:
    """Hold the lock of a tree; CA4104 when another holds it for longer than we wait.

    The lock belongs to the open file: two threads open two, and when a process dies
    the system lets go of it. The file itself stays, since a lock on a removed file guards nothing.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(_NAME, flags, 0o600, dir_fd=home)
    try:
        _acquire(handle, wait_s)
        os.pwrite(handle, b"%-20d" % os.getpid(), 0)
        yield
    finally:
        os.close(handle)


def _acquire(handle: int, wait_s: float) -> None:
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline_s:
                raise refusals.busy(os.pread(handle, 20, 0).decode().strip(), wait_s) from None
            time.sleep(_PAUSE_S)
        else:
            return
