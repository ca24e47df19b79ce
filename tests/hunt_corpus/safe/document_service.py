"""Load and save of one change stand under one lock."""

from __future__ import annotations

import threading
from typing import Protocol


class Storage(Protocol):
    def load(self, name: str) -> str: ...

    def save(self, name: str, text: str) -> None: ...


class MemoryStorage:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def load(self, name: str) -> str:
        return self.texts.get(name, "")

    def save(self, name: str, text: str) -> None:
        self.texts[name] = text


class DocumentService:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._revisions: dict[str, int] = {}
        self._lock = threading.Lock()

    def append(self, name: str, line: str) -> int:
        with self._lock:
            text = self._storage.load(name)
            self._storage.save(name, text + line + "\n")
            self._revisions[name] = self._revisions.get(name, 0) + 1
            return self._revisions[name]

    def read(self, name: str) -> tuple[int, str]:
        with self._lock:
            return self._revisions.get(name, 0), self._storage.load(name)
