"""A code index in memory, small enough to see what a strategy asks it."""

from __future__ import annotations

import re
from collections import Counter

from cleveragents.application.code_index import (
    ChunkHit,
    CommitHit,
    FileCard,
    Symbol,
    SymbolHit,
)

CHUNK_LINES = 5
_DEFINITION = re.compile(r"\s*(?:def|class) (\w+)")


class FakeHistory:
    def __init__(self, commits=()):
        #: Message and files of each commit, the newest first; one commit a day.
        self._commits = list(commits)
        self.commits = len(self._commits)

    def commits_like(self, terms, limit):
        hits = [
            CommitHit(f"{day:040d}", score, float(day), tuple(sorted(files)), message)
            for day, (message, files) in enumerate(self._commits)
            if (score := sum(terms.get(word, 0.0) for word in words_of(message)))
        ]
        return sorted(hits, key=lambda hit: -hit.score)[:limit]

    def changed_with(self, path):
        votes = Counter()
        for _, files in self._commits:
            if path in files:
                votes.update({other: 1 / (len(files) - 1) for other in files if other != path})
        return dict(votes)

    def last_changed_days(self, path):
        days = [float(day) for day, (_, files) in enumerate(self._commits) if path in files]
        return min(days, default=None)

    def changes(self, path):
        return sum(path in files for _, files in self._commits)


class FakeView:
    """Chunks are five lines, symbols are `def` and `class`, a score is a weighted count."""

    def __init__(self, texts, commits=(), missing=0):
        self.texts = dict(texts)
        self.paths = tuple(sorted(self.texts))
        self.missing = missing
        self.notes = ()
        self.history = FakeHistory(commits)

    def terms_of(self, text):
        return words_of(text)

    def card(self, path):
        lines = self.texts[path].split("\n")
        symbols = [
            Symbol(match[1], "other", at, min(at + 1, len(lines)), line)
            for at, line in enumerate(lines, 1)
            if (match := _DEFINITION.match(line))
        ]
        starts = range(1, len(lines) + 1, CHUNK_LINES)
        chunks = [(start, min(start + CHUNK_LINES - 1, len(lines))) for start in starts]
        return FileCard("python", len(lines), tuple(symbols), tuple(chunks))

    def text(self, path):
        return self.texts.get(path)

    def files_like(self, terms):
        return _found({path: _score(text, terms) for path, text in self.texts.items()})

    def paths_like(self, terms):
        return _found({path: _score(path, terms) for path in self.paths})

    def symbols_like(self, terms):
        names = {path: " ".join(one.name for one in self.card(path).symbols) for path in self.paths}
        return _found({path: _score(text, terms) for path, text in names.items()})

    def chunks_like(self, terms, limit):
        hits = [
            ChunkHit(path, start, end, score)
            for path in self.paths
            for start, end in self.card(path).chunks
            if (score := _score("\n".join(self.texts[path].split("\n")[start - 1 : end]), terms))
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.path, hit.start_line))[:limit]

    def definitions(self, name):
        return tuple(
            SymbolHit(path, one)
            for path in self.paths
            for one in self.card(path).symbols
            if one.name == name
        )

    def users(self, name):
        return tuple(self.chunks_like({name.lower(): 1.0}, None))

    def rarity(self, term):
        return 1.0 if self.files_like({term: 1.0}) else 0.0


class FakeIndex:
    """Gives the same view to everybody, and counts how often."""

    def __init__(self, view):
        self._view = view
        self.views = 0

    def view(self, _request, stop):
        stop.raise_if_stopped()
        self.views += 1
        return self._view


def words_of(text):
    """Return words in lower case, whole and taken apart at underscores."""
    words = re.findall(r"\w+", text.lower())
    return dict(
        Counter([*words, *(part for word in words if "_" in word for part in word.split("_"))])
    )


def _score(text, terms):
    words = words_of(text)
    return sum(weight * words.get(term, 0) for term, weight in terms.items())


def _found(scores):
    return {path: score for path, score in scores.items() if score}
