"""Where things are made one at a time, by all threads and processes on one state folder."""

from __future__ import annotations

import fcntl
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from cleveragents.domain.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

#: How long another process may keep the workshop; a dead one leaves it at once.
WAIT_S_MAX: Final = 600.0
_LOOK_AGAIN_S: Final = 0.01


class Workshop:
    """Does pieces of work strictly one after the other, by one thread under a lock on a file.

    Callers of one process are served in the order they came, and wait for their piece.
    What a process left half-made when it died is found by the next one, which is then alone.
    """

    def __init__(self, home: Path, *, wait_s_max: float = WAIT_S_MAX) -> None:
        self._path = home / "workshop.lock"
        self._wait_s_max = wait_s_max
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ca-workshop")

    def do(self, work: Callable[[], T]) -> T:
        """Do a piece of work alone, and return what it returns."""
        try:
            handed_in = self._thread.submit(self._alone, work)
        except RuntimeError as error:
            raise SandboxError(
                "The sandboxes are closed and nothing is made any more",
                code="CA5004",
                hint="Make a new `SandboxManager`",
            ) from error
        return handed_in.result()

    def close(self) -> None:
        """Finish what was begun; closing twice is fine."""
        self._thread.shutdown()

    def _alone(self, work: Callable[[], T]) -> T:
        with self._held():
            return work()

    @contextmanager
    def _held(self) -> Iterator[None]:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._wait_for(file)
            yield
        finally:
            os.close(file)

    def _wait_for(self, file: int) -> None:
        until = time.monotonic() + self._wait_s_max
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise SandboxError(
                        f"Another process has been making sandboxes for {self._wait_s_max} s",
                        code="CA5004",
                        facts={"lock": self._path},
                        hint="Wait for it, or end the process that holds the lock",
                    ) from None
                time.sleep(_LOOK_AGAIN_S)
            else:
                return
