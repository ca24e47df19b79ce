"""Exact edits: a text is replaced where it stands, or the mistake says where it may be."""

from __future__ import annotations

from typing import Final

from cleveragents.domain.errors import RequestError

_LINES_SEARCHED_MAX: Final = 20_000
_LINE_CHARS_MAX: Final = 200
_PLACES_MAX: Final = 10
_CLOSE_MAX: Final = 3


def edited(path: str, data: bytes, old: str, new: str, *, everywhere: bool = False) -> bytes:
    """Replace a text that stands in a file exactly once, or everywhere; refuse with CA5207.

    Bytes around it stay as they are. In a file with line ends of Windows, a text with plain ones
    means the file's.
    """
    wanted, instead = (_with_ends_of(data, text) for text in (old, new))
    if wanted == instead or not wanted:
        what = "must not be empty" if not wanted else "must differ from the text that replaces it"
        raise misfit(path, f"The text to replace in {path!r} {what}")
    times = data.count(wanted)
    if times == 0:
        raise _not_found(path, data, wanted)
    if times > 1 and not everywhere:
        raise _not_unique(path, data, wanted, times)
    return data.replace(wanted, instead)


def misfit(path: str, message: str, *, hint: str | None = None) -> RequestError:
    """Return the refusal of an edit or a patch that does not fit its file."""
    return RequestError(message, code="CA5207", facts={"path": path}, hint=hint)


def _with_ends_of(data: bytes, text: str) -> bytes:
    plain = text.encode("utf-8", "surrogateescape")
    if b"\r\n" in plain or data.count(b"\r\n") != data.count(b"\n"):
        return plain
    return plain.replace(b"\n", b"\r\n") if b"\r\n" in data else plain


def _not_found(path: str, data: bytes, wanted: bytes) -> RequestError:
    import difflib

    lines = [
        line.strip()[:_LINE_CHARS_MAX]
        for line in data.decode("utf-8", "replace").splitlines()[:_LINES_SEARCHED_MAX]
    ]
    first = next(iter(wanted.decode("utf-8", "replace").strip().splitlines()), "")
    close = difflib.get_close_matches(first.strip()[:_LINE_CHARS_MAX], lines, _CLOSE_MAX)
    places = [f"line {lines.index(line) + 1}: {line}" for line in close]
    near = f"; its first line is close to {' and '.join(places)}" if places else ""
    return misfit(
        path,
        f"The text to replace must stand in {path!r}, and it does not{near}",
        hint="Read the file again, and copy the text exactly, blanks included",
    )


def _not_unique(path: str, data: bytes, wanted: bytes, times: int) -> RequestError:
    numbers: list[str] = []
    at = data.find(wanted)
    while at >= 0 and len(numbers) < _PLACES_MAX:
        numbers.append(str(data.count(b"\n", 0, at) + 1))
        at = data.find(wanted, at + len(wanted))
    more = ", …" if times > len(numbers) else ""
    return misfit(
        path,
        f"The text to replace must stand in {path!r} once, got {times} times,"
        f" at lines {', '.join(numbers)}{more}",
        hint="Add lines around it until it is the only one, or replace it everywhere",
    )
