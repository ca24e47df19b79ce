"""Files that past commits like the task changed, and what changed together with them."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from cleveragents.strategies.searching import Quoter, best_chunks, blended, ranked, task_terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cleveragents.application.code_index import CodeIndex, CommitHit
    from cleveragents.application.code_index import History as Commits
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.fragment import Fragment
    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["History"]

_COMMITS_MAX: Final = 50
#: How much a file's votes together, its best vote, co-change and recency count.
_VOTES_WEIGHT: Final = 1.0
_BEST_VOTE_WEIGHT: Final = 1.0
_TOGETHER_WEIGHT: Final = 0.5
_RECENT_WEIGHT: Final = 0.2
#: After this time without a change the chance of the next one is half as large.
_HALF_LIFE_DAYS: Final = 180.0
#: Whose companions are looked at.
_SEEDS: Final = 5
#: A file of few changes has no habits yet.
_CHANGES_DOUBTED: Final = 3
_FILES_MAX: Final = 40


class History:
    """Lets commits whose messages are like the task vote for the files that they changed.

    It keeps no state of a request, so threads may share one.
    """

    name: Final = "history"

    def __init__(self, index: CodeIndex) -> None:
        self._index = index

    def find(self, request: ContextRequest, stop: StopSignal) -> Iterator[Fragment]:
        """Yield of each file the chunk that is most like the task, the best file first."""
        view = self._index.view(request, stop)
        terms = task_terms(view, request.task)
        present = frozenset(view.paths)
        commits = view.history.commits_like(terms, _COMMITS_MAX)
        stop.raise_if_stopped()
        reasons = _reasons(commits)
        scores = {
            path: score for path, score in _scores(view.history, commits).items() if path in present
        }
        chunks = best_chunks(view, terms)
        quoter = Quoter(view, self.name)
        for path, score in ranked(scores, _FILES_MAX):
            stop.raise_if_stopped()
            hits = chunks.get(path)
            span = (hits[0].start_line, hits[0].end_line) if hits else quoter.opening(path)
            reason = reasons.get(path, "changes together with files that fit")
            yield from quoter.quote(path, span, score, reason)


def _scores(history: Commits, commits: list[CommitHit]) -> dict[str, float]:
    votes: dict[str, float] = defaultdict(float)
    best: dict[str, float] = defaultdict(float)
    for commit in commits:
        # A commit of many files says little about each.
        vote = commit.score / math.sqrt(len(commit.files))
        for path in commit.files:
            votes[path] += vote
            best[path] = max(best[path], vote)
    fits = blended((_VOTES_WEIGHT, votes), (_BEST_VOTE_WEIGHT, best))
    together = _together(history, ranked(fits, _SEEDS))
    known = {*votes, *together}
    return blended(
        (_VOTES_WEIGHT, votes),
        (_BEST_VOTE_WEIGHT, best),
        (_TOGETHER_WEIGHT, together),
        (_RECENT_WEIGHT, {path: _recency(history, path) for path in known}),
    )


def _together(history: Commits, seeds: list[tuple[str, float]]) -> dict[str, float]:
    together: dict[str, float] = defaultdict(float)
    for seed, score in seeds:
        habit = _CHANGES_DOUBTED + history.changes(seed)
        for path, share in history.changed_with(seed).items():
            together[path] += score * share / habit
    return together


def _recency(history: Commits, path: str) -> float:
    days = history.last_changed_days(path)
    return 0.0 if days is None else 0.5 ** (days / _HALF_LIFE_DAYS)


def _reasons(commits: list[CommitHit]) -> Mapping[str, str]:
    """Name the most similar commit of each file."""
    reasons: dict[str, str] = {}
    for commit in commits:
        for path in commit.files:
            reasons.setdefault(path, f"changed by {commit.id[:10]}: {commit.title}".strip())
    return reasons
