"""What context is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from cleveragents.domain.errors import RequestError
from cleveragents.domain.fragment import refuse_unless_relative, refuse_unless_said

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ContextRequest", "Overlay", "Written"]

#: More than any model reads; a larger number is a slip of the pen.
TOKENS_MAX_LIMIT: Final = 100_000_000


class Overlay(Protocol):
    """What somebody wrote over a tree without touching it, such as an actor in its sandbox."""

    def changed(self) -> Mapping[str, bytes | None]:
        """Return the content of each changed file by its path from the root; None if it is gone.

        Called from many threads at once.
        """
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """An overlay that is known from the beginning; nobody may change the mapping any more."""

    contents: Mapping[str, bytes | None]

    def changed(self) -> Mapping[str, bytes | None]:
        """Return the content of each changed file; None if it is gone."""
        return self.contents


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """A task, the tree it is about, the files it names, and the room for its context."""

    task: str
    root: Path
    files: tuple[str, ...] = ()
    tokens_max: int = 8000
    #: Found in place of what the root holds.
    overlay: Overlay | None = None

    def __post_init__(self) -> None:
        refuse_unless_said("task", self.task)
        if not isinstance(self.root, Path):
            raise RequestError(
                f"`root` must be a `pathlib.Path`, got {type(self.root).__name__}",
                hint="Pass `Path(...)` of the folder that holds the code",
            )
        if not isinstance(self.files, tuple):
            raise RequestError(
                f"`files` must be a tuple of relative paths, got {type(self.files).__name__}"
            )
        for path in self.files:
            refuse_unless_relative("files", path)
        if self.overlay is not None and not callable(getattr(self.overlay, "changed", None)):
            raise RequestError(
                f"`overlay` must have a method `changed`, got {type(self.overlay).__name__}"
            )
        if type(self.tokens_max) is not int or not 0 < self.tokens_max <= TOKENS_MAX_LIMIT:
            raise RequestError(
                f"`tokens_max` must be a whole number of tokens from 1 to {TOKENS_MAX_LIMIT:,},"
                f" got {self.tokens_max!r}"
            )
