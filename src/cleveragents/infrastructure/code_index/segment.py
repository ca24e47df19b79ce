"""Features of many contents in one place, ready to be searched."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cleveragents.infrastructure.code_index.features import opened
from cleveragents.infrastructure.code_index.postings import Part, Postings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

__all__ = ["Content", "Segment", "Shelf", "Terms", "unpacked"]

#: With more segments, they are put together.
SEGMENTS_MAX: Final = 8
_HEAD: Final = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one content as arrays; see `Features.packed`."""

    #: Terms in each chunk.
    lengths: NDArray[np.uint32]
    #: First and last line of each chunk.
    spans: NDArray[np.uint32]
    numbers: NDArray[np.uint32]
    chunks: NDArray[np.uint16]
    counts: NDArray[np.uint8]
    name_numbers: NDArray[np.uint32]
    name_counts: NDArray[np.uint8]


def unpacked(kept: bytes) -> Terms | None:
    """Return the terms of a content, or None if the bytes are damaged."""
    body = opened(kept)
    if body is None:
        return None
    chunks, terms, names = _HEAD.unpack_from(body)
    at = _HEAD.size
    arrays: list[Any] = []
    for dtype, length in (
        (np.uint32, chunks),
        (np.uint32, 2 * chunks),
        (np.uint32, terms),
        (np.uint16, terms),
        (np.uint8, terms),
        (np.uint32, names),
        (np.uint8, names),
    ):
        arrays.append(np.frombuffer(body, dtype, length, at))
        at += arrays[-1].nbytes
    return Terms(*arrays)


class Content(NamedTuple):
    """What is kept of a content: its terms, and its card as bytes."""

    terms: Terms
    card: bytes


class Segment:
    """Some contents: their chunks and names by term; it never changes."""

    def __init__(self, contents: Mapping[bytes, Content]) -> None:
        self.contents = dict(contents)
        self.keys = tuple(contents)
        parts = [content.terms for content in contents.values()]
        sizes = [len(part.lengths) for part in parts]
        #: The first chunk of each content, and one past the last.
        self.starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)
        #: The content of each chunk.
        self.owners = np.repeat(np.arange(len(parts)), sizes)
        self.chunk_lengths = _joined([part.lengths for part in parts], np.uint32).astype(np.int64)
        self.spans = _joined([part.spans for part in parts], np.uint32).reshape(-1, 2)
        self.lengths = np.bincount(
            self.owners, weights=self.chunk_lengths, minlength=len(parts)
        ).astype(np.int64)
        shifted = [
            part.chunks + np.uint32(start)
            for part, start in zip(parts, self.starts.tolist(), strict=False)
        ]
        self._chunks = Postings(
            _joined([part.numbers for part in parts], np.uint32),
            _joined(shifted, np.uint32),
            _joined([part.counts for part in parts], np.uint8),
        )
        self.name_lengths = np.array(
            [int(part.name_counts.sum(dtype=np.int64)) for part in parts], dtype=np.int64
        )
        self._names = Postings(
            _joined([part.name_numbers for part in parts], np.uint32),
            np.repeat(np.arange(len(parts), dtype=np.uint32), [len(p.name_numbers) for p in parts]),
            _joined([part.name_counts for part in parts], np.uint8),
        )

    def chunk_part(self, copies: NDArray[np.int64]) -> Part:
        """Return the chunks as documents; `copies` says how often each content is there."""

        def find(number: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
            docs, counts = self._chunks.of(number)
            return docs.astype(np.intp), counts.astype(np.float64)

        return Part(find, copies[self.owners], self.chunk_lengths)

    def file_part(self, copies: NDArray[np.int64]) -> Part:
        """Return the contents as documents."""

        def find(number: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
            docs, counts = self._chunks.of(number)
            sums = np.bincount(self.owners[docs], weights=counts, minlength=len(self.keys)).astype(
                np.float64
            )
            found = np.flatnonzero(sums)
            return found, sums[found]

        return Part(find, copies, self.lengths)

    def name_part(self, copies: NDArray[np.int64]) -> Part:
        """Return the names that each content defines as documents."""

        def find(number: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
            docs, counts = self._names.of(number)
            return docs.astype(np.intp), counts.astype(np.float64)

        return Part(find, copies, self.name_lengths)


def _joined(arrays: list[Any], dtype: Any) -> Any:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)


class Shelf:
    """Segments, and where each content is in them; it never changes: `plus` gives another."""

    __slots__ = ("_places", "segments")

    def __init__(self, segments: tuple[Segment, ...] = ()) -> None:
        self.segments = segments
        self._places = {
            key: (number, place)
            for number, segment in enumerate(segments)
            for place, key in enumerate(segment.keys)
        }

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def content(self, key: bytes) -> Content | None:
        """Return what is kept of a content."""
        place = self._places.get(key)
        return None if place is None else self.segments[place[0]].contents[key]

    def plus(self, contents: Mapping[bytes, Content]) -> Shelf:
        """Return a shelf that has these too; small segments are put together now and then."""
        new = {key: one for key, one in contents.items() if key not in self._places}
        if not new:
            return self
        segments = (*self.segments, Segment(new))
        if len(segments) <= SEGMENTS_MAX:
            return Shelf(segments)
        largest = max(segments, key=lambda segment: len(segment.keys))
        rest = [one for one in segments if one is not largest]
        if 2 * sum(len(one.keys) for one in rest) > len(largest.keys):
            return Shelf((_merged(segments),))
        return Shelf((largest, _merged(rest)))

    def only(self, keys: AbstractSet[bytes]) -> Shelf:
        """Return a shelf with no other contents than these."""
        contents = {
            key: one
            for segment in self.segments
            for key, one in segment.contents.items()
            if key in keys
        }
        return Shelf((Segment(contents),)) if contents else Shelf()

    def copies(self, keys: Iterable[bytes]) -> list[NDArray[np.int64]]:
        """Return for each segment how often each of its contents is among the keys."""
        counts = [[0] * len(segment.keys) for segment in self.segments]
        for key in keys:
            place = self._places.get(key)
            if place is not None:
                counts[place[0]][place[1]] += 1
        return [np.array(one, dtype=np.int64) for one in counts]


def _merged(segments: Iterable[Segment]) -> Segment:
    return Segment({key: one for segment in segments for key, one in segment.contents.items()})
