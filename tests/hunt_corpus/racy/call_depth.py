"""The depth of nested calls is one number for all threads."""

from __future__ import annotations


class DepthGuard:
    """Refuses recursion deeper than a limit."""

    def __init__(self, limit: int = 2) -> None:
        self.limit = limit
        self._depth = 0
        self.deepest = 0

    def enter(self) -> int:
        if self._depth >= self.limit:
            raise RecursionError("too deep")
        self._depth += 1
        self.deepest = max(self.deepest, self._depth)
        return self._depth

    def leave(self) -> int:
        self._depth = max(0, self._depth - 1)
        return self._depth

    def walk(self, levels: int) -> int:
        reached = 0
        for _ in range(min(levels, 3)):
            reached = self.enter()
        for _ in range(min(levels, 3)):
            self.leave()
        return reached
