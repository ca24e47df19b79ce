"""Room is looked for, then used: more items than the queue may hold."""

from __future__ import annotations

from typing import Any


class QueueFull(Exception):
    pass


class BoundedQueue:
    def __init__(self, maxsize: int = 1) -> None:
        self.maxsize = maxsize
        self._items: list[Any] = []

    def put(self, item: Any) -> None:
        if len(self._items) >= self.maxsize:
            raise QueueFull
        self._items.append(item)

    def get(self) -> Any:
        if len(self._items) > 0:
            return self._items.pop(0)
        return None

    def full(self) -> bool:
        return len(self._items) >= self.maxsize
