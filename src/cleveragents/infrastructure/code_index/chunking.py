"""Cuts a text into chunks at the boundaries of its definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.application.code_index import FileCard, Symbol
from cleveragents.infrastructure.code_index.definitions import indentation, scan
from cleveragents.infrastructure.code_index.languages import language_of
from cleveragents.infrastructure.code_index.python_lines import python_definitions
from cleveragents.infrastructure.code_index.syntax import has_grammar, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cleveragents.infrastructure.code_index.definitions import Definition

__all__ = ["card_of", "cut_of"]

#: A definition with more lines is cut.
LINES_MAX: Final = 60
#: Neighbours below this are joined, as long as together they stay below the next figure.
_LINES_MIN: Final = 10
_JOINED_LINES_MAX: Final = 40
#: Where a cut is looked for when only lines are known.
_CUT_FROM: Final = 20
_HEAD_CHARS_MAX: Final = 200
#: What begins a line that belongs to the definition below it.
_ABOVE: Final = ("#", "//", "/*", "*", "@", "--", '"""', "%")

Span = tuple[int, int]


def cut_of(path: str) -> str:
    """Return a word for how the file is cut here: by which language, and with which tool."""
    language = language_of(path)
    return f"{language}/{'grammar' if has_grammar(language) else 'lines'}"


def card_of(path: str, text: str) -> FileCard:
    """Return the definitions and the chunks of a file."""
    language = language_of(path)
    lines = text.split("\n")
    definitions = _definitions(language, text, lines)
    spans = tuple(_joined(_pieces(lines, (1, len(lines)), definitions)))
    return FileCard(language, len(lines), tuple(_symbols(lines, definitions, "")), spans)


def _definitions(language: str, text: str, lines: list[str]) -> list[Definition]:
    if language == "python":
        return python_definitions(text)
    found = parse(language, text)
    return scan(language, lines) if found is None else found


def _symbols(lines: list[str], definitions: Iterable[Definition], within: str) -> Iterator[Symbol]:
    for one in definitions:
        head = _head(lines, one)
        yield Symbol(one.name, one.kind, one.start_line, one.end_line, head, within)
        yield from _symbols(lines, one.inner, f"{within}.{one.name}" if within else one.name)


def _head(lines: list[str], definition: Definition) -> str:
    """Return the first line that says the name; decorators may stand above it."""
    for line in lines[definition.start_line - 1 : definition.end_line]:
        if definition.name in line and not line.lstrip().startswith("@"):
            return line.strip()[:_HEAD_CHARS_MAX]
    return lines[definition.start_line - 1].strip()[:_HEAD_CHARS_MAX]


def _pieces(lines: list[str], span: Span, definitions: list[Definition]) -> Iterator[Span]:
    """Cut at definitions; what is too long is cut inside, and last by its lines."""
    first, last = span
    if last - first < LINES_MAX and not definitions:
        yield span
        return
    at = first
    for one in definitions:
        start = _start_with_comments(lines, at, one.start_line)
        if start > at:
            yield from _by_lines(lines, (at, start - 1))
        end = _end_with_blanks(lines, min(one.end_line, last), last)
        if end < at:  # a definition on the last line of another
            continue
        start = max(start, at)
        if end - start < LINES_MAX:
            yield start, end
        else:
            yield from _pieces(lines, (start, end), one.inner)
        at = end + 1
    if at <= last:
        yield from _by_lines(lines, (at, last))


def _start_with_comments(lines: list[str], floor: int, start: int) -> int:
    """Return the first of the lines above that belong to a definition."""
    while start > floor and lines[start - 2].lstrip().startswith(_ABOVE):
        start -= 1
    return start


def _end_with_blanks(lines: list[str], end: int, last: int) -> int:
    """Return the last of the blank lines below, so that they are no piece of their own."""
    while end < last and not lines[end].strip():
        end += 1
    return end


def _by_lines(lines: list[str], span: Span) -> Iterator[Span]:
    """Cut where a blank line comes before the line that stands farthest left."""
    first, last = span
    while last - first >= LINES_MAX:
        cut = _cut(lines, range(first + _CUT_FROM, first + LINES_MAX))
        yield first, cut - 1
        first = cut
    yield first, last


def _cut(lines: list[str], candidates: Iterable[int]) -> int:
    """Return the line to cut before: after a blank one if there is one, far left, and late."""
    numbers = [n for n in candidates if lines[n - 1].strip() and not lines[n - 2].strip()]
    return min(numbers or candidates, key=lambda number: (indentation(lines[number - 1]), -number))


def _joined(pieces: Iterable[Span]) -> Iterator[Span]:
    """Join neighbours when one of them is small."""
    first = last = 0
    for start, end in pieces:
        small = min(last - first, end - start) + 1 < _LINES_MIN
        if last and small and end - first < _JOINED_LINES_MAX:
            last = end
            continue
        if last:
            yield first, last
        first, last = start, end
    yield first, last
