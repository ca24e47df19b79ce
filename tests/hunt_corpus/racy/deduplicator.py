"""Two threads ask about the same message at once; both are told that it is new."""

from __future__ import annotations


class Deduplicator:
    """Says of each message whether it is the first of its kind. Safe to share between threads."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self.duplicates = 0

    def is_new(self, message: str) -> bool:
        if message in self._seen:
            self.duplicates += 1
            return False
        self._seen.add(message)
        return True

    def forget(self, message: str) -> None:
        self._seen.discard(message)

    def __contains__(self, message: str) -> bool:
        return message in self._seen
