"""Nobody writes while the buffers change places."""

from __future__ import annotations

import threading


class DoubleBuffer:
    """Producers write to the front, one consumer swaps and reads the back."""

    def __init__(self) -> None:
        self._front: list[int] = []
        self._back: list[int] = []
        self.swaps = 0
        self._lock = threading.Lock()

    def write(self, value: int) -> int:
        with self._lock:
            self._front.append(value)
            return len(self._front)

    def swap(self) -> tuple[int, ...]:
        with self._lock:
            self._front, self._back = self._back, self._front
            content = tuple(self._back)
            self._back.clear()
            self.swaps += 1
            return content

    def clear(self) -> None:
        with self._lock:
            self._front.clear()
            self._back.clear()
