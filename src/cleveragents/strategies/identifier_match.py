"""Places in the tree that hold the task's words; rare words count more."""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from cleveragents.application.source_tree import read_text, text_of, walk
from cleveragents.domain.fragment import Fragment, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cleveragents.application.code_index import CodeIndex
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["IdentifierMatch", "terms_of"]

_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*")
#: `HTTPServer_error` has the parts HTTP, Server and error.
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: Words that say nothing about a place; other frequent words lose by their frequency.
_FILLERS: Final = frozenset({"and", "are", "but", "for", "from", "not", "that", "the", "with"})
_TERM_LENGTH_MIN: Final = 3
#: Longer ones are data, and the search for a long repetition in a longer one takes minutes.
_TERM_LENGTH_MAX: Final = 100
#: A pasted log must not turn into a thousand searches.
_TERMS_MAX: Final = 64
#: The matches of a word beyond these say nothing new about a file.
_MATCHES_PER_TERM: Final = 50
_LINES_AROUND: Final = 5
_SPAN_LINES_MAX: Final = 60
#: One file must not fill the answer.
_SPANS_PER_FILE: Final = 5
_SPANS_MAX: Final = 200
_TERMS_SHOWN: Final = 3
#: How long it reads. What it found in a part of a large tree is better than nothing in time.
_READING_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class _Span:
    path: str
    start_line: int
    end_line: int
    terms: frozenset[str]
    #: Of the file when its lines were counted.
    version: str


def _monotonic() -> float:
    # Looked up at each call, so that a test may put another clock into `time`.
    return time.monotonic()


class IdentifierMatch:
    """Finds the lines around literal matches of the task's words and identifiers.

    A match begins where a word, a `snake_case` part or a `camelCase` hump begins.
    It reads the tree, for a few seconds at most; with an index only until that is complete.
    It keeps no state of a request, so threads may share one.
    """

    name: Final = "identifier-match"

    def __init__(
        self, index: CodeIndex | None = None, *, clock: Callable[[], float] = _monotonic
    ) -> None:
        self._index = index
        self._clock = clock

    def find(self, request: ContextRequest, stop: StopSignal) -> Iterator[Fragment]:
        """Yield spans, the best first; files that vanish or change meanwhile are left out."""
        if self._is_spared(request, stop):
            return
        until_s = self._clock() + _READING_S
        paths = takewhile(lambda _: self._clock() < until_s, _paths(request, stop))
        spans, rarity = _search(request, terms_of(request.task), paths, stop)
        scored = [(math.fsum(rarity[term] for term in span.terms), span) for span in spans]
        scored.sort(key=lambda pair: (-pair[0], pair[1].path, pair[1].start_line))
        taken: Counter[str] = Counter()
        found = 0
        for score, span in scored:
            stop.raise_if_stopped()
            if found == _SPANS_MAX:
                return
            taken[span.path] += 1
            lines = _lines(request, span) if taken[span.path] <= _SPANS_PER_FILE else []
            if lines:
                found += 1
                end_line = span.start_line + len(lines) - 1
                text = "\n".join(lines)
                reason = _reason(span.terms, rarity)
                yield Fragment(
                    span.path,
                    span.start_line,
                    end_line,
                    text,
                    score,
                    self.name,
                    reason,
                    span.version,
                )

    def _is_spared(self, request: ContextRequest, stop: StopSignal) -> bool:
        """Say whether an index has the whole tree; one that is broken has nothing of it."""
        if self._index is None:
            return False
        try:
            return self._index.view(request, stop).missing == 0
        except Exception:  # noqa: BLE001  # the strategies that need it tell what broke
            return False


def terms_of(task: str) -> tuple[str, ...]:
    """Return the words, identifiers and their parts, in lower case, each once."""
    terms: dict[str, None] = {}
    for identifier in _IDENTIFIER.findall(task):
        for term in (identifier, *_PART.findall(identifier)):
            lower = term.lower()
            if _TERM_LENGTH_MIN <= len(lower) <= _TERM_LENGTH_MAX and lower not in _FILLERS:
                terms[lower] = None
    return tuple(islice(terms, _TERMS_MAX))


def _search(
    request: ContextRequest, terms: Sequence[str], paths: Iterable[str], stop: StopSignal
) -> tuple[list[_Span], dict[str, float]]:
    """Return all spans of these files, and how rare each term is in them."""
    spans: list[_Span] = []
    files_with: Counter[str] = Counter()
    files = 0
    for path in paths:
        stop.raise_if_stopped()
        text = _text(request, path)
        if text is None:
            continue
        files += 1
        in_path = frozenset(term for term in terms if any(_matches(path, path.lower(), term)))
        hits = _hits(text, terms, stop)
        files_with.update(in_path.union(*hits.values()))
        if in_path and not hits:
            hits = {1: set()}
        if hits:
            spans.extend(_spans(path, in_path, hits, text))
    return spans, {term: math.log2(1 + files / count) for term, count in files_with.items()}


def _paths(request: ContextRequest, stop: StopSignal) -> Iterator[str]:
    """Yield the files of the tree, then those that were written over it."""
    changed = _changed(request)
    for path in walk(request.root, stop):
        if path not in changed:
            yield path
    yield from sorted(changed)


def _text(request: ContextRequest, path: str) -> str | None:
    changed = _changed(request)
    if path not in changed:
        return read_text(request.root / path)
    content = changed[path]
    return None if content is None else text_of(content)


def _changed(request: ContextRequest) -> Mapping[str, bytes | None]:
    return {} if request.overlay is None else request.overlay.changed()


def _hits(text: str, terms: Sequence[str], stop: StopSignal) -> dict[int, set[str]]:
    """Return the terms that begin in each line."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters grow, and positions must not shift
        lower = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
    present = [term for term in terms if term in lower]
    if not present:
        return {}
    newlines = [found.start() for found in re.finditer("\n", text)]
    hits: dict[int, set[str]] = defaultdict(set)
    for term in present:
        stop.raise_if_stopped()
        for start in islice(_matches(text, lower, term), _MATCHES_PER_TERM):
            hits[bisect_left(newlines, start) + 1].add(term)
    return dict(hits)


def _matches(text: str, lower: str, term: str) -> Iterator[int]:
    start = lower.find(term)
    while start != -1:
        if _begins_part(text, start):
            yield start
        start = lower.find(term, start + 1)


def _begins_part(text: str, start: int) -> bool:
    """Say whether a word or a hump begins here: in `HTTPServer` at H and S, not at T or e."""
    if start == 0 or not text[start - 1].isalpha():
        return True
    inside_capitals = text[start - 1].isupper() and text[start + 1 : start + 2].isupper()
    return text[start].isupper() and not inside_capitals


def _spans(
    path: str, in_path: frozenset[str], hits: Mapping[int, set[str]], text: str
) -> Iterator[_Span]:
    """Join the surroundings of matches that touch, up to a length that is still a place."""
    lines, version = text.count("\n") + 1, version_of(text)
    start, end, terms = 0, 0, set(in_path)
    for line in sorted(hits):
        first, last = max(1, line - _LINES_AROUND), min(lines, line + _LINES_AROUND)
        if start and (first > end + 1 or last - start >= _SPAN_LINES_MAX):
            yield _Span(path, start, end, frozenset(terms), version)
            start, terms = 0, set(in_path)
            first = max(first, end + 1)
        start, end = start or first, last
        terms |= hits[line]
    yield _Span(path, start, end, frozenset(terms), version)


def _lines(request: ContextRequest, span: _Span) -> list[str]:
    """Read the span again: keeping every span of a large tree would fill the memory."""
    text = _text(request, span.path)
    if text is None or version_of(text) != span.version:
        return []
    return text.split("\n")[span.start_line - 1 : span.end_line]


def _reason(terms: frozenset[str], rarity: Mapping[str, float]) -> str:
    rarest = sorted(terms, key=lambda term: (-rarity[term], term))
    more = len(rarest) - _TERMS_SHOWN
    shown = ", ".join(f"`{term}`" for term in rarest[:_TERMS_SHOWN])
    return f"holds {shown} and {more} more" if more > 0 else f"holds {shown}"
