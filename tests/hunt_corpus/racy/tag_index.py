"""A loop over the dict while another thread adds a key: RuntimeError, dictionary changed size."""

from __future__ import annotations


class TagIndex:
    def __init__(self) -> None:
        self._tags: dict[str, set[str]] = {}

    def tag(self, document: str, tag: str) -> None:
        self._tags.setdefault(tag, set()).add(document)

    def untag(self, document: str) -> int:
        removed = 0
        for documents in self._tags.values():
            if document in documents:
                documents.remove(document)
                removed += 1
        return removed

    def tags_of(self, document: str) -> list[str]:
        found = []
        for tag, documents in self._tags.items():
            if document in documents:
                found.append(tag)
        return sorted(found)

    def popular(self) -> dict[str, int]:
        return {tag: len(documents) for tag, documents in self._tags.items()}
