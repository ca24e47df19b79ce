"""What many callers hand to the one thread that writes, taken in groups."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class WriteQueue(Generic[T]):
    """A bounded queue of many callers for one taker, who takes all that waits at once.

    What was put is taken once, in its order, also after `close`; what comes later is refused.
    A full queue makes callers wait. The taker waits for a number of them: it is woken when so
    many are there, not by each.
    """

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._lock = threading.Lock()  # guards: _waiting, _closed, _enough
        self._arrived = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._waiting: deque[T] = deque()
        self._closed = False
        self._enough = 1  # how many must be there for the taker to be woken

    def put(self, item: T) -> bool:
        """Hand something in, as soon as there is room; false when the queue is closed."""
        with self._lock:
            while len(self._waiting) >= self._size_max and not self._closed:
                self._room.wait()
            if self._closed:
                return False
            self._waiting.append(item)
            if len(self._waiting) >= self._enough:
                self._arrived.notify()
            return True

    def wait(self, count: int, timeout_s: float | None) -> None:
        """Wait until so many are there, or as many as may be; not when the queue is closed."""
        with self._lock:
            self._enough = min(count, self._size_max)
            self._arrived.wait_for(
                lambda: len(self._waiting) >= self._enough or self._closed, timeout_s
            )

    def take(self, count_max: int) -> list[T]:
        """Return what waits, oldest first, without waiting for more."""
        with self._lock:
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), count_max))]
            self._room.notify_all()
        return group

    def close(self) -> None:
        """Refuse what comes from now on, and let nobody wait any longer."""
        with self._lock:
            self._closed = True
            self._arrived.notify_all()
            self._room.notify_all()
