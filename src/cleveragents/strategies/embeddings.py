"""Chunks that mean what the task means, whatever their words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.strategies.file_kinds import worth
from cleveragents.strategies.searching import Quoter, ranked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.application.code_index import ChunkHit, ChunkSearch, CodeIndex
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.fragment import Fragment
    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["Embeddings"]

_CHUNKS_MAX: Final = 400
_FILES_MAX: Final = 40
#: One file must not fill the answer.
_CHUNKS_PER_FILE: Final = 2


class Embeddings:
    """Finds the chunks whose vectors are nearest to that of the task.

    It keeps no state of a request, so threads may share one.
    """

    name: Final = "embeddings"
    #: As much as names, references or history: it adds to the words, it does not outrank them.
    weight: Final = 1

    def __init__(self, index: CodeIndex, search: ChunkSearch) -> None:
        self._index = index
        self._search = search

    def find(self, request: ContextRequest, stop: StopSignal) -> Iterator[Fragment]:
        """Yield the nearest chunks of the best files, the best file first."""
        view = self._index.view(request, stop)
        chunks: dict[str, list[ChunkHit]] = {}
        for hit in self._search.chunks_near(view, request.task, _CHUNKS_MAX, stop):
            chunks.setdefault(hit.path, []).append(hit)
        quoter = Quoter(view, self.name)
        best = {path: worth(path) * hits[0].score for path, hits in chunks.items()}
        for path, _ in ranked(best, _FILES_MAX):
            stop.raise_if_stopped()
            for hit in chunks[path][:_CHUNKS_PER_FILE]:
                span = hit.start_line, hit.end_line
                reason = "means something like the task"
                yield from quoter.quote(path, span, worth(path) * hit.score, reason)
