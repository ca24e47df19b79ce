"""`setdefault` with a fresh token decides who was first, in one step and without a lock."""

from __future__ import annotations


class Deduplicator:
    """Says of each message whether it is the first of its kind. Safe to share between threads."""

    def __init__(self) -> None:
        self._seen: dict[str, object] = {}

    def is_new(self, message: str) -> bool:
        mine = object()
        return self._seen.setdefault(message, mine) is mine

    def forget(self, message: str) -> None:
        self._seen.pop(message, None)

    def __contains__(self, message: str) -> bool:
        return message in self._seen
