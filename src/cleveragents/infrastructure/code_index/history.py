"""The commits before a tree, searched by their messages and by the files they changed."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from cleveragents.application.code_index import CommitHit
from cleveragents.infrastructure.code_index.features import term_number
from cleveragents.infrastructure.code_index.postings import Field, Part, Postings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["NO_HISTORY", "Commit", "CommitHistory", "field_of", "weights_of"]

#: A commit that changed more files says little about each.
FILES_MAX: Final = 30
_DAY_S: Final = 86_400.0
_COUNT_MAX: Final = 255


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit as it was read; this never changes, so it is read once."""

    id: str
    at_s: int
    #: The first line of its message.
    title: str
    #: Of the whole message, by number.
    terms: Mapping[int, int]
    #: From the top of the repository, as named in the commit; those that are gone after it too.
    files: tuple[str, ...]
    #: New name and old name of each file that it renamed.
    renames: tuple[tuple[str, str], ...] = ()

    def packed(self) -> bytes:
        """Return the commit as bytes."""
        terms = [list(self.terms), list(self.terms.values())]
        values = [self.id, self.at_s, self.title, terms, self.files, self.renames]
        return json.dumps(values, separators=(",", ":")).encode("ascii")

    @classmethod
    def unpacked(cls, body: bytes) -> Commit:
        """Return what was packed."""
        name, at_s, title, (numbers, counts), files, renames = json.loads(body)
        terms = dict(zip(numbers, counts, strict=True))
        pairs = tuple((new, old) for new, old in renames)
        return cls(name, at_s, title, terms, tuple(files), pairs)


class CommitHistory:
    """A `History` of commits that are given newest first; it never changes."""

    def __init__(self, commits: Sequence[Commit], prefix: str = "") -> None:
        self._commits: list[tuple[Commit, tuple[str, ...]]] = []
        self._newest_s = max((commit.at_s for commit in commits), default=0)
        for commit, files in zip(commits, _named_now(commits), strict=True):
            inside = sorted(file.removeprefix(prefix) for file in files if file.startswith(prefix))
            if inside and len(files) <= FILES_MAX:
                self._commits.append((commit, tuple(inside)))

    @property
    def commits(self) -> int:
        """How many commits are looked at."""
        return len(self._commits)

    def commits_like(self, terms: Mapping[str, float], limit: int) -> list[CommitHit]:
        """Search the messages by weighted BM25; the best first, then the newest."""
        (scores,) = self._messages.scores(weights_of(terms))
        found = np.flatnonzero(scores > 0)
        best = found[np.argsort(-scores[found], kind="stable")][: max(limit, 0)]
        return [
            CommitHit(
                commit.id,
                float(scores[at]),
                self._age_days(commit),
                files,
                commit.title,
            )
            for at in best.tolist()
            for commit, files in [self._commits[at]]
        ]

    def changed_with(self, path: str) -> Mapping[str, float]:
        """Return the files that changed together with this one, by votes."""
        votes: dict[str, float] = defaultdict(float)
        for at in self._by_file.get(path, ()):
            files = self._commits[at][1]
            for other in files:
                if other != path:
                    votes[other] += 1 / (len(files) - 1)
        return dict(sorted(votes.items()))

    def last_changed_days(self, path: str) -> float | None:
        """Return how long before the newest commit the file changed last; None if unknown."""
        ages = [self._age_days(self._commits[at][0]) for at in self._by_file.get(path, ())]
        return min(ages, default=None)

    def changes(self, path: str) -> int:
        """Return how many of the commits changed the file."""
        return len(self._by_file.get(path, ()))

    def _age_days(self, commit: Commit) -> float:
        return (self._newest_s - commit.at_s) / _DAY_S

    @cached_property
    def _by_file(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = defaultdict(list)
        for at, (_, files) in enumerate(self._commits):
            for file in files:
                places[file].append(at)
        return dict(places)

    @cached_property
    def _messages(self) -> Field:
        return field_of([commit.terms for commit, _ in self._commits])


def _named_now(commits: Iterable[Commit]) -> Iterable[set[str]]:
    """Yield the files of each commit under the names that they got later."""
    now: dict[str, str] = {}
    for commit in commits:
        yield {now.get(file, file) for file in commit.files}
        for new, old in commit.renames:
            now[old] = now.get(new, new)


def weights_of(terms: Mapping[str, float]) -> dict[int, float]:
    """Return the weights by number; those of terms that share one are added in their order."""
    weights: dict[int, float] = {}
    for term, weight in sorted(terms.items()):
        number = term_number(term)
        weights[number] = weights.get(number, 0.0) + weight
    return weights


def field_of(documents: Sequence[Mapping[int, int]]) -> Field:
    """Return documents, given as counts by term number, as one field."""
    sizes = [len(document) for document in documents]
    numbers = np.array(list(chain.from_iterable(documents)), dtype=np.uint32)
    found = list(chain.from_iterable(document.values() for document in documents))
    counts = np.minimum(np.array(found, dtype=np.int64), _COUNT_MAX).astype(np.uint8)
    postings = Postings(numbers, np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes), counts)
    lengths = np.array([sum(one.values()) for one in documents], dtype=np.int64)

    def find(number: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        docs, found = postings.of(number)
        return docs.astype(np.intp), found.astype(np.float64)

    return Field([Part(find, np.ones(len(sizes), dtype=np.int64), lengths)])


NO_HISTORY: Final = CommitHistory(())
