"""A condition: whoever finds no room waits until somebody has taken an item."""

from __future__ import annotations

import threading
from typing import Any


class QueueFull(Exception):
    pass


class BoundedQueue:
    def __init__(self, maxsize: int = 1) -> None:
        self.maxsize = maxsize
        self._items: list[Any] = []
        self._changed = threading.Condition()

    def put(self, item: Any, block: bool = False) -> None:
        with self._changed:
            while len(self._items) >= self.maxsize:
                if not block:
                    raise QueueFull
                self._changed.wait()
            self._items.append(item)
            self._changed.notify_all()

    def get(self) -> Any:
        with self._changed:
            if not self._items:
                return None
            item = self._items.pop(0)
            self._changed.notify_all()
            return item

    def wait_get(self) -> Any:
        with self._changed:
            while not self._items:
                self._changed.wait()
            item = self._items.pop(0)
            self._changed.notify_all()
            return item

    def full(self) -> bool:
        with self._changed:
            return len(self._items) >= self.maxsize
