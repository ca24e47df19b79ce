"""A write goes to the buffer that `swap` has just given to the reader."""

from __future__ import annotations


class DoubleBuffer:
    """Producers write to the front, one consumer swaps and reads the back."""

    def __init__(self) -> None:
        self._front: list[int] = []
        self._back: list[int] = []
        self.swaps = 0

    def write(self, value: int) -> int:
        self._front.append(value)
        return len(self._front)

    def swap(self) -> tuple[int, ...]:
        self._front, self._back = self._back, self._front
        content = tuple(self._back)
        self._back.clear()
        self.swaps += 1
        return content

    def clear(self) -> None:
        self._front.clear()
        self._back.clear()
