"""A look without the lock, then again with it; words are appended before their number is known."""

from __future__ import annotations

import threading


class Vocabulary:
    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._words: list[str] = []
        self._lock = threading.Lock()

    def id_of(self, word: str) -> int:
        number = self._ids.get(word)
        if number is not None:
            return number
        with self._lock:
            number = self._ids.get(word)
            if number is None:
                number = len(self._words)
                self._words.append(word)
                self._ids[word] = number
            return number

    def word(self, number: int) -> str | None:
        with self._lock:
            if number < 0 or number >= len(self._words):
                return None
            return self._words[number]

    def __len__(self) -> int:
        with self._lock:
            return len(self._words)
