"""Turns: threads that would only redo each other's work do it one after the other."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Who waited so long goes on without a turn.
WAIT_S_MAX: Final = 60.0


class Turns:
    """Gives each name to one thread of this process at a time.

    A turn saves work and guards nothing: a thread that waited too long goes on without one, and
    other processes know nothing of it. What must not be lost needs a guard of its own.
    """

    def __init__(self, wait_s_max: float = WAIT_S_MAX) -> None:
        self._wait_s_max = wait_s_max
        self._changed = threading.Condition()  # guards: _takers
        self._takers: dict[str, int] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[bool]:
        """Wait for the turn of a name, and keep it for the block; false if it did not come."""
        with self._changed:
            mine = self._changed.wait_for(
                lambda: self._takers.get(name) is None, timeout=self._wait_s_max
            )
            if mine:
                self._takers[name] = threading.get_ident()
        try:
            yield mine
        finally:
            if mine:
                with self._changed:
                    del self._takers[name]
                    self._changed.notify_all()
