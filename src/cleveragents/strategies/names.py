"""Files whose path, or whose definitions' names, hold the words of the task."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from cleveragents.strategies.searching import Quoter, blended, ranked, task_terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cleveragents.application.code_index import CodeIndex, CodeView, Symbol
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.fragment import Fragment
    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["Names"]

_FILES_MAX: Final = 40
_SYMBOLS_PER_FILE: Final = 2
_PATH_REASON: Final = "its path holds words of the task"


class Names:
    """Finds definitions by the parts of their names (`camelCase`, `snake_case`) and of paths.

    It keeps no state of a request, so threads may share one.
    """

    name: Final = "names"

    def __init__(self, index: CodeIndex) -> None:
        self._index = index

    def find(self, request: ContextRequest, stop: StopSignal) -> Iterator[Fragment]:
        """Yield the best definitions of the best files, the best file first."""
        view = self._index.view(request, stop)
        terms = task_terms(view, request.task)
        scores = blended((1.0, view.paths_like(terms)), (1.0, view.symbols_like(terms)))
        quoter = Quoter(view, self.name)
        rarity = {term: view.rarity(term) for term in terms}
        for path, score in ranked(scores, _FILES_MAX):
            stop.raise_if_stopped()
            symbols = _named(view, path, rarity)
            if not symbols:
                yield from quoter.quote(path, quoter.opening(path), score, _PATH_REASON)
            for rank, symbol in enumerate(symbols):
                span = symbol.start_line, symbol.end_line
                # The file's score belongs to its best definition.
                yield from quoter.quote(path, span, score / (1 + rank), f"defines `{symbol.name}`")


def _named(view: CodeView, path: str, rarity: Mapping[str, float]) -> list[Symbol]:
    """Return the definitions whose names hold the rarest words of the task."""
    card = view.card(path)
    scored = []
    for symbol in () if card is None else card.symbols:
        score = math.fsum(rarity.get(term, 0.0) for term in view.terms_of(symbol.name))
        if score > 0:
            scored.append((-score, symbol.start_line, symbol))
    scored.sort(key=lambda one: one[:2])
    return [symbol for _, _, symbol in scored[:_SYMBOLS_PER_FILE]]
