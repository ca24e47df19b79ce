"""Two threads read the same number and hand out the same id."""

from __future__ import annotations


class IdGenerator:
    def __init__(self, prefix: str = "job", start: int = 1) -> None:
        self.prefix = prefix
        self._next = start

    def next_id(self) -> str:
        number = self._next
        self._next = number + 1
        return f"{self.prefix}-{number:04d}"

    def reserve(self, count: int) -> range:
        first = self._next
        self._next += count
        return range(first, first + count)

    def peek(self) -> int:
        return self._next
