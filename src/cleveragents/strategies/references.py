"""Definitions and users of the identifiers that the task names."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Final

from cleveragents.strategies.searching import Quoter, blended, ranked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.application.code_index import ChunkHit, CodeIndex, CodeView
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.fragment import Fragment
    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["References", "identifiers_of"]

#: What a writer marks as code, and what looks like code: `a_b`, `aB`, `AaB`, `a()`, `a.b`.
_CODE: Final = re.compile(
    r"`([^`\n]+)`"
    r"|(\b\w+_\w+\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z]\w*[a-z]\w*[A-Z]\w*\b|\b\w+\(\)|\b\w+(?:\.\w+)+\b)"
)
_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*")
_LENGTH_MIN: Final = 3
#: A pasted log must not turn into a thousand searches.
_IDENTIFIERS_MAX: Final = 40
#: What is used everywhere says nothing about a place.
_USERS_MAX: Final = 200
_FILES_MAX: Final = 30
#: Half of what endless uses in one file would count is reached at this number of uses.
_USES_HALF: Final = 1.2


class References:
    """Finds where the identifiers of the task are defined, and who uses them.

    It keeps no state of a request, so threads may share one.
    """

    name: Final = "references"

    def __init__(self, index: CodeIndex) -> None:
        self._index = index

    def find(self, request: ContextRequest, stop: StopSignal) -> Iterator[Fragment]:
        """Yield definitions and the chunk of each file that uses most of them."""
        view = self._index.view(request, stop)
        found = _Found()
        for name in identifiers_of(request.task):
            stop.raise_if_stopped()
            found.look_up(view, name)
        quoter = Quoter(view, self.name)
        scores = blended((1.0, found.defined), (1.0, found.used))
        for path, score in ranked(scores, _FILES_MAX):
            stop.raise_if_stopped()
            for span, reason in found.spans[path].items():
                yield from quoter.quote(path, span, score, reason)


class _Found:
    def __init__(self) -> None:
        self.defined: dict[str, float] = defaultdict(float)
        self.used: dict[str, float] = defaultdict(float)
        self.spans: dict[str, dict[tuple[int, int], str]] = defaultdict(dict)

    def look_up(self, view: CodeView, name: str) -> None:
        definitions = view.definitions(name)
        files = {hit.path for hit in definitions}
        for path in sorted(files):
            # A name that many files define points at none of them.
            self.defined[path] += 1 / len(files)
        for hit in definitions:
            span = hit.symbol.start_line, hit.symbol.end_line
            self.spans[hit.path].setdefault(span, f"defines `{name}`")
        users = view.users(name)
        if len(users) > _USERS_MAX:
            return
        uses: dict[str, float] = defaultdict(float)
        best: dict[str, ChunkHit] = {}
        for chunk in users:
            uses[chunk.path] += chunk.score
            best.setdefault(chunk.path, chunk)
        rarity = view.rarity(name.strip("_").lower())
        for path, count in sorted(uses.items()):
            self.used[path] += rarity * count / (count + _USES_HALF)
            if path not in files:
                span = best[path].start_line, best[path].end_line
                self.spans[path].setdefault(span, f"uses `{name}`")


def identifiers_of(task: str) -> list[str]:
    """Return the words of a task that are code, each once, in their order."""
    names = (
        name
        for marked, looks in _CODE.findall(task)
        for name in _IDENTIFIER.findall(marked or looks)
        if len(name) >= _LENGTH_MIN
    )
    return list(islice(dict.fromkeys(names), _IDENTIFIERS_MAX))
