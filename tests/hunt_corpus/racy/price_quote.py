"""Writers hold the lock, readers do not: a reader sees the new bid beside the old ask."""

from __future__ import annotations

import threading


class PriceQuote:
    """Best bid and ask, written by the feed, read by traders. Thread-safe."""

    def __init__(self, bid: int = 10, ask: int = 11) -> None:
        self._lock = threading.Lock()
        self._bid = bid
        self._ask = ask

    def update(self, bid: int, ask: int) -> None:
        with self._lock:
            self._bid = bid
            self._ask = ask

    def shift(self, by: int) -> None:
        with self._lock:
            self._bid += by
            self._ask += by

    def read(self) -> tuple[int, int]:
        return self._bid, self._ask

    def spread(self) -> int:
        return self._ask - self._bid
