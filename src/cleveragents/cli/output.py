"""The only module that prints: stdout is data, stderr is talk."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cleveragents.domain.errors import CleverAgentsError


class ReaderGone(Exception):  # noqa: N818  # names what happened; it is no error
    """Whoever read our answer went away, as `head` does; there is nobody to go on for."""


def visible(text: str) -> str:
    """Return a text that cannot move the cursor, hide or turn around what stands beside it.

    Names, messages and outputs may be anybody's words. Line ends and tabs stay; every other
    character that is none to see is shown by its number.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else _escaped(one) for one in text)


def one_line(text: str) -> str:
    """Return a text for a place within a line: it cannot begin another one."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def data(text: str) -> None:
    """Print what was asked for."""
    _print(visible(text))


def _print(text: str) -> None:
    try:
        sys.stdout.write(f"{text}\n")
    except BrokenPipeError:
        raise _reader_gone() from None


def raw(data_bytes: bytes) -> None:
    """Print bytes as they are: a patch need not be text."""
    flush()
    try:
        sys.stdout.buffer.write(data_bytes)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise _reader_gone() from None


def flush() -> None:
    """Hand over what is still buffered of the answer."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise _reader_gone() from None


def record(value: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    _print(json.dumps(value, ensure_ascii=False, default=str))


def talk(text: str) -> None:
    """Say what happens, on stderr."""
    draw(visible(text))


def draw(text: str) -> None:
    """Write to the terminal what moves its cursor; all that is in it must be `visible`."""
    # Whoever listened may be gone, or the disk behind it be full: the work goes on.
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def facts(pairs: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> str:
    """Return aligned lines of names and values."""
    rows = [(one_line(str(name)), visible(str(value))) for name, value in dict(pairs).items()]
    width = max((len(name) for name, _ in rows), default=0)
    # No value can begin a line of its own, which could then pass for one of ours.
    below = "\n" + " " * (width + 4)
    return "\n".join(f"  {name:<{width}}  {value.replace(chr(10), below)}" for name, value in rows)


def error(problem: CleverAgentsError, *, as_json: bool) -> None:
    """Show an error as people read it, or as the record it is."""
    if as_json:
        record(problem.to_dict())
        return
    talk(f"error[{problem.code}]: {one_line(problem.message)}")
    if problem.facts:
        talk(facts(problem.facts))
    if problem.hint:
        talk(f"\nhint: {one_line(problem.hint)}")


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _reader_gone() -> ReaderGone:
    # What is still buffered must go somewhere, or Python complains on its way out.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ReaderGone()
