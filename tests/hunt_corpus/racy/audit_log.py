"""Two entries link to the same last entry: the chain forks and no longer verifies."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    text: str
    previous: str
    digest: str


class AuditLog:
    """An append-only log in which every entry seals the one before it."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def append(self, text: str) -> str:
        previous = self._entries[-1].digest if self._entries else ""
        digest = hashlib.sha256((previous + text).encode()).hexdigest()[:12]
        self._entries.append(Entry(text, previous, digest))
        return digest

    def verify(self) -> bool:
        previous = ""
        for entry in self._entries:
            if entry.previous != previous:
                return False
            previous = entry.digest
        return True

    def last(self) -> Entry | None:
        return self._entries[-1] if self._entries else None
