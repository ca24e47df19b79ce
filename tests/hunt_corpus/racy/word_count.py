"""Counts two levels deep: the inner dict is made twice, and its counts are lost."""

from __future__ import annotations


class WordCount:
    def __init__(self):
        self._counts = {}

    def add(self, language, word):
        if language not in self._counts:
            self._counts[language] = {}
        if word not in self._counts[language]:
            self._counts[language][word] = 0
        self._counts[language][word] += 1

    def count(self, language, word):
        return self._counts.get(language, {}).get(word, 0)

    def languages(self):
        return sorted(self._counts)

    def total(self, language):
        return sum(self._counts.get(language, {}).values())
