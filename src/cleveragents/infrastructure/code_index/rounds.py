"""Work that many callers want at once is done for all of them together."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["Rounds"]

T = TypeVar("T")

#: How often a waiting caller looks whether it was stopped.
_LOOK_S: Final = 0.05


class _Round(Generic[T]):
    """One run of the work, for everybody who came before it began."""

    __slots__ = ("ended", "result")

    def __init__(self) -> None:
        self.ended = False
        self.result: tuple[T] | None = None  # None: it failed


class Rounds(Generic[T]):
    """Runs work one at a time; each caller gets the result of a run that began after it came.

    A caller that comes while the work runs waits for the next run, with all others that wait,
    and one of them does it. A run that raises raises for its own caller alone; the others go on.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())  # guards: _running, _waiting
        self._running = False
        self._waiting: _Round[T] | None = None

    def share(self, work: Callable[[], T], stop: StopSignal) -> T:
        """Run the work, or let another caller's run of it count."""
        while True:
            mine = self._arrive()
            while not (leads := self._leads(mine)) and not mine.ended:
                stop.raise_if_stopped()
                self._rest(mine)
            if leads:
                return self._lead(mine, work)
            if mine.result is not None:
                return mine.result[0]

    def _arrive(self) -> _Round[T]:
        """Return the round that begins next."""
        with self._changed:
            if self._waiting is None:
                self._waiting = _Round()
            return self._waiting

    def _leads(self, mine: _Round[T]) -> bool:
        """Begin the caller's round, if it is its turn and nobody has begun it."""
        with self._changed:
            if self._running or self._waiting is not mine:
                return False
            self._running, self._waiting = True, None
            return True

    def _rest(self, mine: _Round[T]) -> None:
        """Wait a while for the end of what runs."""
        with self._changed:
            if self._running and not mine.ended:
                self._changed.wait(_LOOK_S)

    def _lead(self, mine: _Round[T], work: Callable[[], T]) -> T:
        result: tuple[T] | None = None
        try:
            result = (work(),)
            return result[0]
        finally:
            with self._changed:
                mine.result = result
                mine.ended = True  # read without the lock: the result stands before it
                self._running = False
                self._changed.notify_all()
