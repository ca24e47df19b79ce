"""A lock for each language, given out by `setdefault`; the inner dict is touched under it alone."""

from __future__ import annotations

import threading


class WordCount:
    def __init__(self):
        self._counts = {}

    def _shelf(self, language):
        return self._counts.setdefault(language, (threading.Lock(), {}))

    def add(self, language, word):
        lock, counts = self._shelf(language)
        with lock:
            counts[word] = counts.get(word, 0) + 1

    def count(self, language, word):
        lock, counts = self._shelf(language)
        with lock:
            return counts.get(word, 0)

    def total(self, language):
        lock, counts = self._shelf(language)
        with lock:
            return sum(counts.values())
