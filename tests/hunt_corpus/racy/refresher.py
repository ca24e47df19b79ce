"""A flag says that a refresh is running; two threads both find it down and both refresh."""

from __future__ import annotations


class Refresher:
    """Only one thread refreshes; others do not wait for it."""

    def __init__(self) -> None:
        self._busy = False
        self.generation = 0
        self._inside = 0
        self.most_inside = 0

    def refresh(self) -> bool:
        if self._busy:
            return False
        self._busy = True
        self._inside += 1
        self.most_inside = max(self.most_inside, self._inside)
        self.generation += 1
        self._inside -= 1
        self._busy = False
        return True

    def current(self) -> int:
        return self.generation
