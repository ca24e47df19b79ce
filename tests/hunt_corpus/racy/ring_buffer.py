"""Two writers take the same slot, and the head moves twice past a slot nobody wrote."""

from __future__ import annotations


class RingBuffer:
    def __init__(self, size: int = 4) -> None:
        self._slots: list[object] = [None] * size
        self._head = 0
        self._count = 0

    def push(self, item: object) -> None:
        self._slots[self._head] = item
        self._head = (self._head + 1) % len(self._slots)
        if self._count < len(self._slots):
            self._count += 1

    def latest(self) -> object:
        if self._count == 0:
            return None
        return self._slots[self._head - 1]

    def items(self) -> list[object]:
        if self._count < len(self._slots):
            return self._slots[: self._count]
        return self._slots[self._head :] + self._slots[: self._head]
