"""Which commits wait for the disk, and when those that did not are brought there."""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

_log = logging.getLogger(__name__)

#: How long a commit that did not wait may be in the memory of the machine alone.
SYNC_S: Final = 0.02


class Syncing:
    """Of a store's writer thread alone.

    SQLite appends commits to its log. A commit that waits brings the whole log to the disk, so
    what was committed before it is there, too; and never does a later one survive an earlier.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._log_path = f"{path}-wal"
        self._waits = True
        self._due: float | None = None
        connection.execute("PRAGMA synchronous = FULL")

    @property
    def due_in_s(self) -> float | None:
        """How long until something must be on the disk; None when all is there."""
        return None if self._due is None else self._due - self._clock()

    def prepare(self, *, wait: bool) -> None:
        """Let the next commit wait for the disk, or not; it does when others are overdue."""
        due_in_s = self.due_in_s
        wait = wait or (due_in_s is not None and due_in_s <= 0)
        if wait is not self._waits:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if wait else 'NORMAL'}")
            self._waits = wait

    def committed(self, *, surely: bool) -> None:
        """Take note of a commit; one that surely changed something has synced what was before it.

        Of a commit that changed nothing SQLite writes nothing, and waits for nothing.
        """
        if self._waits:
            self._due = None if surely else self._due
        elif self._due is None:
            self._due = self._clock() + SYNC_S

    def catch_up(self) -> None:
        """Bring to the disk what was committed without waiting for it."""
        self._due = None
        try:
            # SQLite's locks are on its other files, so this one may be closed. It is not there
            # when everything was moved out of it, which has synced it.
            with suppress(FileNotFoundError):
                number = os.open(self._log_path, os.O_RDONLY)
                try:
                    os.fsync(number)
                finally:
                    os.close(number)
        except OSError:
            # Nobody waits for it; whoever waits for the next commit is told of the disk's trouble.
            _log.exception("`%s` was not brought to the disk", self._log_path)
