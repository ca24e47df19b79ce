"""`next` of an `itertools.count` is one step, and nothing else keeps the number."""

from __future__ import annotations

import itertools


class IdGenerator:
    def __init__(self, prefix: str = "job", start: int = 1) -> None:
        self.prefix = prefix
        self._numbers = itertools.count(start)

    def next_id(self) -> str:
        return f"{self.prefix}-{next(self._numbers):04d}"

    def describe(self) -> str:
        return f"ids like {self.prefix}-0001"
