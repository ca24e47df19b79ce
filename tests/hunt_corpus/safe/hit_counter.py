"""Adding and reading take the same lock."""

from __future__ import annotations

import threading
from collections import defaultdict


class HitCounter:
    def __init__(self) -> None:
        self._hits: defaultdict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def hit(self, page: str, times: int = 1) -> None:
        with self._lock:
            self._hits[page] += times

    def hits(self, page: str) -> int:
        with self._lock:
            return self._hits.get(page, 0)

    def top(self) -> str | None:
        with self._lock:
            if not self._hits:
                return None
            return max(sorted(self._hits), key=self._hits.__getitem__)


counter = HitCounter()


def track(page: str) -> None:
    counter.hit(page)
