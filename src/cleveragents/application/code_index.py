"""The code index as strategies see it: a tree with what was computed from its contents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.stop_signal import StopSignal

__all__ = [
    "ChunkHit",
    "ChunkSearch",
    "CodeIndex",
    "CodeView",
    "CommitHit",
    "FileCard",
    "History",
    "Symbol",
    "SymbolHit",
]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition: where it stands, and the line that introduces it."""

    name: str
    #: `class`, `function`, `method` or `other`.
    kind: str
    start_line: int
    end_line: int
    #: The signature's first line without what surrounds it.
    head: str
    #: The names of what it stands in, from the outside in, joined by dots; empty at the top.
    within: str = ""


@dataclass(frozen=True, slots=True)
class FileCard:
    """What is known of one file's content; lines count from 1."""

    language: str
    lines: int
    #: In the order of the file.
    symbols: tuple[Symbol, ...]
    #: First and last line of each chunk; together they are the file, in order, without gaps.
    chunks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ChunkHit:
    """Lines of a file that a search found; higher scores are better."""

    path: str
    start_line: int
    end_line: int
    score: float


@dataclass(frozen=True, slots=True)
class SymbolHit:
    """A definition that a search found."""

    path: str
    symbol: Symbol


@dataclass(frozen=True, slots=True)
class CommitHit:
    """A commit whose message a search found."""

    id: str
    score: float
    #: Before the newest commit that is looked at, so that the answer does not depend on the day.
    age_days: float
    #: As they are named now, sorted; files that are gone keep their last name.
    files: tuple[str, ...]
    #: The first line of its message.
    title: str


class History(Protocol):
    """The ancestors of the commit that the tree stands on; empty where there is no repository.

    Merges are left out, and so are commits that changed very many files.
    """

    @property
    def commits(self) -> int:
        """How many commits are looked at."""
        ...

    def commits_like(self, terms: Mapping[str, float], limit: int) -> list[CommitHit]:
        """Search the messages by weighted BM25; the best first."""
        ...

    def changed_with(self, path: str) -> Mapping[str, float]:
        """Return the files that changed together with this one.

        Each commit of n files votes 1 / (n - 1) for each of the others.
        """
        ...

    def last_changed_days(self, path: str) -> float | None:
        """Return how long before the newest commit the file changed last; None if unknown."""
        ...

    def changes(self, path: str) -> int:
        """Return how many of the commits changed the file."""
        ...


class CodeView(Protocol):
    """One tree at one moment; it never changes, so the strategies of a request share it.

    Terms are those of `terms_of`; searches take them with weights and give what scores above 0.
    Scores depend on the tree alone: statistics are those of exactly its files.
    """

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that git would show and that hold text, sorted."""
        ...

    @property
    def missing(self) -> int:
        """How many files of the tree are not indexed yet; they are in `paths` all the same."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to be done in the background, neither of files nor of commits."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that say what is left out, and why; empty if nothing is."""
        ...

    @property
    def history(self) -> History:
        """The commits before this tree."""
        ...

    def terms_of(self, text: str) -> dict[str, int]:
        """Return the terms of a text with their counts, cut as those of the files were."""
        ...

    def content(self, path: str) -> bytes | None:
        """Return the name of a file's content, which stands for its text, chunks and symbols.

        None if it is not indexed, or not in the tree.
        """
        ...

    def card(self, path: str) -> FileCard | None:
        """Return what is known of a file; None if it is not indexed, or not in the tree."""
        ...

    def text(self, path: str) -> str | None:
        """Return exactly the text that the card's lines speak of.

        None if the file was changed or taken away after the view was made.
        """
        ...

    def files_like(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Search whole files by weighted BM25."""
        ...

    def chunks_like(self, terms: Mapping[str, float], limit: int) -> list[ChunkHit]:
        """Search chunks by weighted BM25; the best first, equal ones in the order of the tree."""
        ...

    def paths_like(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Search the parts of paths; the file's name counts more than its folders."""
        ...

    def symbols_like(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Search files by the names that they define."""
        ...

    def definitions(self, name: str) -> tuple[SymbolHit, ...]:
        """Return what is defined under exactly this name, in the order of the tree."""
        ...

    def users(self, name: str, limit: int = 100) -> tuple[ChunkHit, ...]:
        """Return the chunks that hold this identifier, in upper or lower case; most uses first."""
        ...

    def rarity(self, term: str) -> float:
        """Return the term's inverse document frequency over files; 0.0 if no file holds it."""
        ...


class CodeIndex(Protocol):
    """Keeps what was computed from contents; safe for any number of threads and processes."""

    def view(self, request: ContextRequest, stop: StopSignal) -> CodeView:
        """Return the tree as it is now, with the request's overlay.

        It does not wait for a large index to be built: `missing` tells what is not done yet,
        and the work goes on in the background.
        """
        ...


class ChunkSearch(Protocol):
    """Finds chunks by something else than their words; safe for any number of threads."""

    def chunks_near(
        self, view: CodeView, text: str, limit: int, stop: StopSignal
    ) -> list[ChunkHit]:
        """Return the chunks of a tree that are nearest to a text, the best first."""
        ...
