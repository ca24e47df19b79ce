"""One tree at one moment, ready to be searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cleveragents.application.code_index import ChunkHit, SymbolHit
from cleveragents.application.source_tree import text_of
from cleveragents.infrastructure.code_index.features import (
    key_of,
    name_number,
    term_number,
    unpacked_card,
)
from cleveragents.infrastructure.code_index.freshness import read
from cleveragents.infrastructure.code_index.history import weights_of
from cleveragents.infrastructure.code_index.postings import rarity
from cleveragents.infrastructure.code_index.terms import terms_of, terms_of_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from cleveragents.application.code_index import FileCard, History, Symbol
    from cleveragents.infrastructure.code_index.fields import Fields

__all__ = ["Tree", "TreeView"]


@dataclass(frozen=True, slots=True)
class Tree:
    """What a view is made of."""

    root: str
    fields: Fields
    history: History
    notes: tuple[str, ...]
    #: Texts that are in memory anyway: those of the overlay, and what was read just now.
    texts: Mapping[str, str]
    is_whole: bool = True


class TreeView:
    """A `CodeView`: it never changes, so any number of threads may share one."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._fields = tree.fields
        self._shelf = tree.fields.shelf
        self.paths: tuple[str, ...] = tree.fields.paths
        self.missing: int = len(self.paths) - len(tree.fields.indexed)
        self.is_whole = tree.is_whole
        self.notes = tree.notes
        self.history = tree.history

    # -- single files --------------------------------------------------------------------

    def terms_of(self, text: str) -> dict[str, int]:
        """Return the terms of a text with their counts, cut as those of the files were."""
        return terms_of(text)

    def content(self, path: str) -> bytes | None:
        """Return the name of a file's content; None if it is not indexed, or not in the tree."""
        return self._fields.indexed.get(path)

    def card(self, path: str) -> FileCard | None:
        """Return what is known of a file; None if it is not indexed, or not in the tree."""
        key = self._fields.indexed.get(path)
        content = None if key is None else self._shelf.content(key)
        return None if content is None else unpacked_card(content.card)

    def text(self, path: str) -> str | None:
        """Return exactly the text that the card's lines speak of; None if it is gone."""
        kept = self._tree.texts.get(path)
        if kept is not None:
            return kept
        key = self._fields.indexed.get(path)
        found = None if key is None else read(f"{self._tree.root}/{path}", 0)
        if found is None or key_of(path, found[0]) != key:
            return None
        return text_of(found[0])

    # -- searches ------------------------------------------------------------------------

    def files_like(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Search whole files by weighted BM25."""
        return self._by_path(self._fields.files.scores(weights_of(terms)))

    def symbols_like(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Search files by the names that they define."""
        return self._by_path(self._fields.names.scores(weights_of(terms)))

    def chunks_like(self, terms: Mapping[str, float], limit: int) -> list[ChunkHit]:
        """Search chunks by weighted BM25; the best first, equal ones in the order of the tree."""
        return self._chunk_hits(self._fields.chunks.scores(weights_of(terms)), limit)

    def paths_like(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Search the parts of paths; the file's name counts more than its folders."""
        (scores,) = self._fields.path_parts.scores(weights_of(terms))
        found = np.flatnonzero(scores).tolist()
        return {self.paths[at]: float(scores[at]) for at in found}

    def definitions(self, name: str) -> tuple[SymbolHit, ...]:
        """Return what is defined under exactly this name, in the order of the tree."""
        _, places = self._fields.names.found(name_number(name))
        hits = [
            SymbolHit(path, symbol)
            for segment, (docs, _) in zip(self._shelf.segments, places, strict=True)
            for key in [segment.keys[at] for at in docs.tolist()]
            for path in self._fields.paths_of.get(key, ())
            for symbol in _symbols(segment.contents[key].card)
            if symbol.name == name
        ]
        hits.sort(key=lambda hit: hit.path)  # stable: those of one file stay in its order
        return tuple(hits)

    def users(self, name: str, limit: int = 100) -> tuple[ChunkHit, ...]:
        """Return the chunks that hold this identifier; most uses first."""
        terms = terms_of_word(name)
        if not terms:
            return ()
        _, places = self._fields.chunks.found(term_number(terms[0]))
        scores = []
        for part, (docs, counts) in zip(self._fields.chunks.parts, places, strict=True):
            uses = np.zeros(len(part.copies))
            uses[docs] = counts
            uses[part.copies == 0] = 0.0
            scores.append(uses)
        return tuple(self._chunk_hits(scores, limit))

    def rarity(self, term: str) -> float:
        """Return the term's inverse document frequency over files; 0.0 if no file holds it."""
        frequency, _ = self._fields.files.found(term_number(term))
        return rarity(frequency, self._fields.files.documents)

    # -- from documents to paths ----------------------------------------------------------

    def _by_path(self, scores: Iterable[NDArray[np.float64]]) -> dict[str, float]:
        found = {
            path: score
            for segment, part in zip(self._shelf.segments, scores, strict=True)
            for at, score in zip(
                np.flatnonzero(part).tolist(), part[part != 0].tolist(), strict=True
            )
            for path in self._fields.paths_of[segment.keys[at]]
        }
        return dict(sorted(found.items()))

    def _chunk_hits(self, scores: Iterable[NDArray[np.float64]], limit: int) -> list[ChunkHit]:
        hits: list[tuple[float, str, int, int]] = []
        for segment, part in zip(self._shelf.segments, scores, strict=True):
            for at in _best(part, limit):
                start, end = segment.spans[at].tolist()
                paths = self._fields.paths_of[segment.keys[segment.owners[at]]]
                hits += [(-float(part[at]), path, start, end) for path in paths]
        hits.sort()
        return [ChunkHit(path, start, end, -score) for score, path, start, end in hits[:limit]]


def _symbols(kept: bytes) -> tuple[Symbol, ...]:
    card = unpacked_card(kept)
    return () if card is None else card.symbols


def _best(scores: NDArray[np.float64], limit: int) -> list[int]:
    """Return the places of the best scores above 0, and of all that are equal to the last."""
    found = np.flatnonzero(scores > 0)
    if limit < 1:
        return []
    if len(found) > limit:
        least = np.partition(scores[found], len(found) - limit)[len(found) - limit]
        found = found[scores[found] >= least]
    return [int(at) for at in found]
