"""A fragment: whole lines of one file, and who found them why."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from cleveragents.domain.errors import RequestError

__all__ = ["Fragment", "is_relative", "refuse_unless_relative", "refuse_unless_said", "version_of"]


@dataclass(frozen=True, slots=True)
class Fragment:
    """The lines `start_line` to `end_line` of a file, as one strategy found them.

    Lines count from 1 and are joined by newlines, without one after the last.
    Scores are compared only with scores of the same strategy; higher is better.
    """

    path: str
    start_line: int
    end_line: int
    text: str
    score: float
    #: The strategy that found it.
    source: str
    reason: str
    #: Of the whole file that the lines are taken from, as `version_of` gives it; empty if unknown.
    #: Lines of two versions never stand in one context.
    version: str = ""

    def __post_init__(self) -> None:
        refuse_unless_relative("path", self.path)
        _refuse_unless_lines(self.start_line, self.end_line)
        _refuse_unless_text(self.text, self.end_line - self.start_line + 1)
        if not _is_finite(self.score):
            raise RequestError(f"`score` must be a finite number, got {self.score!r}")
        refuse_unless_said("source", self.source)
        refuse_unless_said("reason", self.reason)
        if not isinstance(self.version, str):
            raise RequestError(f"`version` must be text, got {self.version!r}")

    @property
    def lines(self) -> list[str]:
        """The text of each line, from `start_line` on."""
        return self.text.split("\n")


def version_of(text: str) -> str:
    """Return the mark of a file's whole text: equal marks, equal texts."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def is_relative(path: object) -> bool:
    """Say whether a path is relative, in POSIX form, printable and inside the root."""
    return (
        isinstance(path, str)
        and path.isprintable()
        and "\\" not in path
        and {"", ".", ".."}.isdisjoint(path.split("/"))
    )


def refuse_unless_relative(name: str, path: object) -> None:
    """Refuse a path that is not relative, with the name of the argument that held it."""
    if not is_relative(path):
        raise RequestError(
            f"`{name}` must be a relative path such as `src/app.py`, got {path!r}",
            facts={name: path},
            hint="Write it from the root, with `/`, and without `.`, `..` or control characters",
        )


def refuse_unless_said(name: str, value: object) -> None:
    """Refuse what is not text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise RequestError(f"`{name}` must be text that says something, got {value!r}")


def _refuse_unless_lines(start: object, end: object) -> None:
    if type(start) is int and type(end) is int and 1 <= start <= end:
        return
    raise RequestError(
        f"Lines must be whole numbers from 1, the last not before the first, got {start!r} to"
        f" {end!r}",
        facts={"start_line": start, "end_line": end},
    )


def _refuse_unless_text(text: object, lines: int) -> None:
    if not isinstance(text, str):
        raise RequestError(f"`text` must be text, got {type(text).__name__}")
    if text.count("\n") + 1 != lines:
        raise RequestError(
            f"`text` must have one line for each of its {lines} line numbers,"
            f" got {text.count(chr(10)) + 1}",
            hint="Join the lines with newlines, without one after the last",
        )
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise RequestError(f"`text` must be Unicode text, got {error.reason}") from None


def _is_finite(score: object) -> bool:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return False
    try:
        return math.isfinite(score)
    except OverflowError:  # an int beyond every float
        return False
