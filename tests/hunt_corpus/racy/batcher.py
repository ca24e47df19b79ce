"""An item added between the look at the list and its swap is flushed twice or never."""

from __future__ import annotations


class Batcher:
    """Collect records and hand them on in batches; many producers share one."""

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self._pending: list[str] = []
        self.batches: list[tuple[str, ...]] = []

    def add(self, record: str) -> bool:
        self._pending.append(record)
        if len(self._pending) >= self.size:
            self.flush()
            return True
        return False

    def flush(self) -> int:
        batch = tuple(self._pending)
        self._pending = []
        if batch:
            self.batches.append(batch)
        return len(batch)
