"""The test for emptiness and `heappop` are apart, and two pushes can share a ticket."""

from __future__ import annotations

import heapq
from typing import Any


class PriorityQueue:
    """Tasks of higher priority first, in the order of arrival within one priority."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Any]] = []
        self._ticket = 0

    def push(self, item: str, priority: int = 0) -> int:
        self._ticket += 1
        ticket = self._ticket
        heapq.heappush(self._heap, (-priority, ticket, item))
        return ticket

    def pop(self) -> Any:
        if len(self._heap) == 0:
            return None
        return heapq.heappop(self._heap)[2]

    def peek(self) -> Any:
        return self._heap[0][2] if self._heap else None
