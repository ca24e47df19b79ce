"""A callable object that remembers results: hits and misses are lost, the oldest goes twice."""

from __future__ import annotations


class Squares:
    """Remember the squares of the last numbers."""

    def __init__(self, maxsize: int = 1) -> None:
        self.maxsize = maxsize
        self._results: dict[int, int] = {}
        self.hits = 0
        self.misses = 0

    def __call__(self, number: int) -> int:
        if number in self._results:
            self.hits += 1
            return self._results[number]
        self.misses += 1
        result = number * number
        if len(self._results) >= self.maxsize:
            del self._results[next(iter(self._results))]
        self._results[number] = result
        return result

    def clear(self) -> None:
        self._results.clear()
        self.hits = self.misses = 0


squares = Squares()
