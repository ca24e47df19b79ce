"""Loops hold the lock that writers hold."""

from __future__ import annotations

import threading


class TagIndex:
    def __init__(self) -> None:
        self._tags: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    def tag(self, document: str, tag: str) -> None:
        with self._lock:
            self._tags.setdefault(tag, set()).add(document)

    def untag(self, document: str) -> int:
        with self._lock:
            removed = 0
            for documents in self._tags.values():
                if document in documents:
                    documents.remove(document)
                    removed += 1
            return removed

    def tags_of(self, document: str) -> list[str]:
        with self._lock:
            found = []
            for tag, documents in self._tags.items():
                if document in documents:
                    found.append(tag)
            return sorted(found)

    def popular(self) -> dict[str, int]:
        with self._lock:
            return {tag: len(documents) for tag, documents in self._tags.items()}
