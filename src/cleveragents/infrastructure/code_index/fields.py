"""The files of a tree as documents to be searched: whole, in chunks, by names and by paths."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from cleveragents.infrastructure.code_index.features import numbered
from cleveragents.infrastructure.code_index.history import field_of
from cleveragents.infrastructure.code_index.postings import Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from cleveragents.infrastructure.code_index.segment import Shelf

__all__ = ["Fields"]

#: How much more the name of a file counts than the folders that it lies in.
_FILE_NAME_WEIGHT: Final = 3
_PATHS_KEPT: Final = 1 << 16


class Fields:
    """What a search needs of one tree; it never changes, so threads and views share it.

    What is computed on first use depends on the tree alone: two threads that come first compute
    the same.
    """

    def __init__(self, keys: Mapping[str, bytes | None], shelf: Shelf) -> None:
        #: The name of each file's content; None for a file that was not read yet.
        self.keys = keys
        self.shelf = shelf
        self.paths: tuple[str, ...] = tuple(sorted(keys))
        self.indexed = {path: key for path, key in keys.items() if key is not None and key in shelf}

    @cached_property
    def paths_of(self) -> dict[bytes, list[str]]:
        """The files that hold each content."""
        paths: dict[bytes, list[str]] = {}
        for path, key in self.indexed.items():
            paths.setdefault(key, []).append(path)
        return paths

    @cached_property
    def files(self) -> Field:
        """Whole files."""
        pairs = zip(self.shelf.segments, self._copies, strict=True)
        return Field([segment.file_part(copies) for segment, copies in pairs])

    @cached_property
    def chunks(self) -> Field:
        """Chunks."""
        pairs = zip(self.shelf.segments, self._copies, strict=True)
        return Field([segment.chunk_part(copies) for segment, copies in pairs])

    @cached_property
    def names(self) -> Field:
        """The names that each file defines."""
        pairs = zip(self.shelf.segments, self._copies, strict=True)
        return Field([segment.name_part(copies) for segment, copies in pairs])

    @cached_property
    def path_parts(self) -> Field:
        """The parts of paths."""
        return field_of([_path_terms(path) for path in self.paths])

    @cached_property
    def _copies(self) -> list[NDArray[np.int64]]:
        return self.shelf.copies(self.indexed.values())


@lru_cache(maxsize=_PATHS_KEPT)
def _path_terms(path: str) -> Mapping[int, int]:
    folders, _, name = path.rpartition("/")
    counts = numbered(folders)
    for number, count in numbered(name).items():
        counts[number] = counts.get(number, 0) + count * _FILE_NAME_WEIGHT
    return counts
