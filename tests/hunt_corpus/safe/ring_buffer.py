"""A deque with a maximal length: each method is a single operation of it."""

from __future__ import annotations

from collections import deque


class RingBuffer:
    def __init__(self, size: int = 4) -> None:
        self._slots: deque[object] = deque(maxlen=size)

    def push(self, item: object) -> None:
        self._slots.append(item)

    def latest(self) -> object:
        try:
            return self._slots[-1]
        except IndexError:
            return None

    def items(self) -> list[object]:
        return list(self._slots.copy())
