"""Two new words get the same number, and the list of words is one longer than the table."""

from __future__ import annotations


class Vocabulary:
    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._words: list[str] = []

    def id_of(self, word: str) -> int:
        if word in self._ids:
            return self._ids[word]
        number = len(self._words)
        self._ids[word] = number
        self._words.append(word)
        return number

    def word(self, number: int) -> str | None:
        if number < 0 or number >= len(self._words):
            return None
        return self._words[number]

    def __len__(self) -> int:
        return len(self._words)
