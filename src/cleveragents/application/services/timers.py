"""What is to be done later, by the thread that owns it."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Timers:
    """Calls functions when their time has come; one thread owns it, and nobody else is called."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()

    def after(self, delay_s: float, do: Callable[[], object]) -> None:
        """Call a function after so many seconds; those of one moment in the order of asking."""
        heapq.heappush(self._waiting, (self._clock() + delay_s, next(self._numbers), do))

    def next_s(self) -> float | None:
        """Return how long it is to the next one; None when there is none."""
        return max(0.0, self._waiting[0][0] - self._clock()) if self._waiting else None

    def run(self) -> None:
        """Call all whose time has come."""
        now = self._clock()
        while self._waiting and self._waiting[0][0] <= now:
            heapq.heappop(self._waiting)[2]()
