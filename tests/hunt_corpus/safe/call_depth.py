"""A context variable holds the depth: every thread has its own."""

from __future__ import annotations

import contextvars


class DepthGuard:
    """Refuses recursion deeper than a limit."""

    def __init__(self, limit: int = 2) -> None:
        self.limit = limit
        self._depth: contextvars.ContextVar[int] = contextvars.ContextVar("depth", default=0)

    def enter(self) -> int:
        depth = self._depth.get()
        if depth >= self.limit:
            raise RecursionError("too deep")
        self._depth.set(depth + 1)
        return depth + 1

    def leave(self) -> int:
        depth = max(0, self._depth.get() - 1)
        self._depth.set(depth)
        return depth
