"""A lock that is tried, not waited for: who comes while a refresh runs is told so, by design."""

from __future__ import annotations

import threading


class Refresher:
    """Only one thread refreshes; others do not wait for it."""

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self.generation = 0
        self._inside = 0
        self.most_inside = 0

    def refresh(self) -> bool:
        if not self._busy.acquire(blocking=False):
            return False
        try:
            self._inside += 1
            self.most_inside = max(self.most_inside, self._inside)
            self.generation += 1
            self._inside -= 1
        finally:
            self._busy.release()
        return True

    def current(self) -> int:
        return self.generation
