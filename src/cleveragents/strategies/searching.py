"""What the strategies that search the code index share: the task's terms, scores, fragments."""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Final

from cleveragents.domain.fragment import Fragment, version_of
from cleveragents.strategies.file_kinds import worth

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cleveragents.application.code_index import ChunkHit, CodeView

__all__ = ["Quoter", "best_chunks", "blended", "ranked", "task_terms"]

#: Words that say nothing about a place; other frequent words lose by their frequency.
_FILLERS: Final = (
    "a all also an and any are as at be but by can do does for from has have if in instead into"
    " is it its lets more no not now of on only or our per should so some than that the their"
    " then there these this to use used using via was we when where which will with you your"
)
#: A pasted log must not turn into a thousand searches.
_TERMS_MAX: Final = 200
#: Longer definitions are shown by their beginning.
_QUOTE_LINES_MAX: Final = 60
#: How many chunks are looked at to find the best ones of each file.
_CHUNKS_MAX: Final = 800


def task_terms(view: CodeView, text: str) -> dict[str, float]:
    """Return the terms of a text; one that is said again counts a little more."""
    fillers = view.terms_of(_FILLERS)
    counts = view.terms_of(text)
    said = ((term, count) for term, count in counts.items() if fillers.get(term) is None)
    return {term: 1 + math.log(count) for term, count in islice(said, _TERMS_MAX)}


def blended(*parts: tuple[float, Mapping[str, float]]) -> dict[str, float]:
    """Add up scores by path, each part divided by its best and weighted, by the file's kind."""
    best = [max(scores.values(), default=0.0) for _, scores in parts]
    paths = sorted({path for _, scores in parts for path in scores})
    return {
        path: worth(path)
        * math.fsum(
            weight * scores.get(path, 0.0) / top
            for (weight, scores), top in zip(parts, best, strict=True)
            if top > 0
        )
        for path in paths
    }


def ranked(scores: Mapping[str, float], limit: int) -> list[tuple[str, float]]:
    """Return the best paths with their scores, the best first."""
    found = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return [pair for pair in found[:limit] if pair[1] > 0]


def best_chunks(view: CodeView, terms: Mapping[str, float]) -> dict[str, list[ChunkHit]]:
    """Return the chunks of each file that are like the task, the best first."""
    chunks: dict[str, list[ChunkHit]] = {}
    for hit in view.chunks_like(terms, _CHUNKS_MAX):
        chunks.setdefault(hit.path, []).append(hit)
    return chunks


class Quoter:
    """Makes the fragments of one strategy's answer; each file is read once."""

    def __init__(self, view: CodeView, source: str) -> None:
        self._view = view
        self._source = source
        self._files: dict[str, tuple[list[str], str]] = {}  # lines and version

    def quote(
        self, path: str, span: tuple[int, int], score: float, reason: str
    ) -> Iterable[Fragment]:
        """Return the lines as a fragment; nothing if the file was changed meanwhile."""
        known = self._files.get(path)
        if known is None:
            whole = self._view.text(path)
            known = ([], "") if whole is None else (whole.split("\n"), version_of(whole))
            self._files[path] = known
        lines, version = known
        start, end = span[0], min(span[1], span[0] + _QUOTE_LINES_MAX - 1)
        text = "\n".join(lines[start - 1 : end])
        if not text.strip():
            return ()
        end = min(end, len(lines))
        return (Fragment(path, start, end, text, score, self._source, reason, version),)

    def opening(self, path: str) -> tuple[int, int]:
        """Return the file's first chunk."""
        card = self._view.card(path)
        return card.chunks[0] if card is not None and card.chunks else (1, 1)
