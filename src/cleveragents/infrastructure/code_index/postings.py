"""Documents by term, in flat arrays; scoring is exact for whichever documents count."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.uint32]
    Counts = NDArray[np.int64]
    Scores = NDArray[np.float64]

__all__ = ["Field", "Part", "Postings", "rarity"]

#: How fast further uses of a term in one document lose weight.
_K1: Final = 1.2
#: How much a long document is held against it.
_B: Final = 0.75


class Postings:
    """Which documents hold a term, and how often; it never changes."""

    def __init__(self, numbers: Numbers, docs: Numbers, counts: NDArray[np.uint8]) -> None:
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        self._docs = docs[order]
        self._counts = counts[order]
        self._terms, self._starts = np.unique(ordered, return_index=True)

    def of(self, number: int) -> tuple[Numbers, NDArray[np.uint8]]:
        """Return the documents with a term, and its count in each."""
        terms, starts = self._terms, self._starts
        at = int(np.searchsorted(terms, np.uint32(number)))
        if at == len(terms) or int(terms[at]) != number:
            return self._docs[:0], self._counts[:0]
        end = int(starts[at + 1]) if at + 1 < len(terms) else len(self._docs)
        start = int(starts[at])
        return self._docs[start:end], self._counts[start:end]


class Part(NamedTuple):
    """Some of the documents that are searched together."""

    #: Gives for a term's number its count in each document, as an array over all documents,
    #: or the documents and the counts.
    find: Callable[[int], tuple[NDArray[np.intp], Scores]]
    #: How often each document is in the tree; 0 for one that is not.
    copies: Counts
    lengths: Counts


class Field:
    """The documents of a tree, in parts, with their statistics."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self.documents = sum(int(part.copies.sum()) for part in self.parts)
        length = sum(int((part.copies * part.lengths).sum()) for part in self.parts)
        average = length / self.documents if length else 1.0
        self._norms = tuple(_K1 * (1 - _B + _B * part.lengths / average) for part in self.parts)

    def found(self, number: int) -> tuple[int, list[tuple[NDArray[np.intp], Scores]]]:
        """Return how many documents hold a term, and where it stands in each part."""
        places = [part.find(number) for part in self.parts]
        frequency = sum(
            int(part.copies[docs].sum()) for part, (docs, _) in zip(self.parts, places, strict=True)
        )
        return frequency, places

    def scores(self, terms: Mapping[int, float]) -> list[Scores]:
        """Return the weighted BM25 score of every document, part by part.

        Each document's sum is made in the order of the terms' numbers,
        so it does not depend on how the documents came into parts.
        """
        sums = [np.zeros(len(part.copies)) for part in self.parts]
        for number, weight in sorted(terms.items()):
            frequency, places = self.found(number)
            if not frequency:
                continue
            factor = weight * rarity(frequency, self.documents) * (_K1 + 1)
            for total, norms, (docs, counts) in zip(sums, self._norms, places, strict=True):
                total[docs] += factor * counts / (counts + norms[docs])
        for total, part in zip(sums, self.parts, strict=True):
            total[part.copies == 0] = 0.0
        return sums


def rarity(frequency: int, documents: int) -> float:
    """Return the inverse document frequency of a term that so many of the documents hold."""
    return math.log1p((documents - frequency + 0.5) / (frequency + 0.5)) if frequency else 0.0
