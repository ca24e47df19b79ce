"""Definitions in a text, found line by line: for languages without a grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Definition", "nested", "scan"]

_MODIFIERS: Final = (
    r"(?:(?:export|default|declare|pub(?:\([^)]*\))?|public|private|protected|internal|static|"
    r"abstract|final|sealed|override|virtual|async|unsafe|inline|open|data|suspend|local)\s+)*"
)
_KINDS: Final = {
    "class": "class",
    "struct": "class",
    "interface": "class",
    "trait": "class",
    "enum": "class",
    "record": "class",
    "object": "class",
    "protocol": "class",
    "module": "class",
    "namespace": "class",
    "impl": "class",
    "type": "class",
    "def": "function",
    "defp": "function",
    "defmodule": "class",
    "function": "function",
    "func": "function",
    "fun": "function",
    "fn": "function",
    "sub": "function",
    "proc": "function",
    "macro": "function",
}
_DEFINITION: Final = re.compile(
    rf"^([ \t]*){_MODIFIERS}({'|'.join(_KINDS)})\s+(?:\([^)]*\)\s*)?([A-Za-z_$][\w$]*[!?]?)",
    re.MULTILINE,
)
_HEADING: Final = re.compile(r"^()(#{1,6})[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
#: Languages whose headings are what they define.
_PROSE: Final = frozenset({"markdown"})
#: A text that defines more is generated.
_DEFINITIONS_MAX: Final = 5_000
_TAB_COLUMNS: Final = 4


@dataclass(slots=True)
class Definition:
    """A definition with what it holds; lines count from 1."""

    name: str
    kind: str
    start_line: int
    end_line: int
    inner: list[Definition] = field(default_factory=list)


def scan(language: str, lines: list[str]) -> list[Definition]:
    """Return the definitions of a text, nested by their indentation."""
    prose = language in _PROSE
    pattern = _HEADING if prose else _DEFINITION
    found: list[tuple[int, Definition]] = []
    for number, line in enumerate(lines, 1):
        match = pattern.match(line)
        if match is None:
            continue
        depth = len(match[2]) if prose else indentation(line)
        kind = "other" if prose else _KINDS[match[2]]
        found.append((depth, Definition(match[3], kind, number, number)))
        if len(found) == _DEFINITIONS_MAX:
            break
    _find_ends(found, lines, prose=prose)
    return nested([definition for _, definition in found])


def indentation(line: str) -> int:
    """Return how many columns of space a line begins with."""
    columns = len(line) - len(line.lstrip())
    return len(line[:columns].expandtabs(_TAB_COLUMNS)) if "\t" in line else columns


def _find_ends(found: list[tuple[int, Definition]], lines: list[str], *, prose: bool) -> None:
    """Let each end before the next line that stands as far left; its brackets belong to it."""
    for index, (depth, definition) in enumerate(found):
        end = definition.start_line
        until = len(lines)
        for later_depth, later in found[index + 1 :]:
            if later_depth <= depth:
                until = later.start_line - 1
                break
        while end < until:
            line = lines[end]
            if not prose and line.strip() and indentation(line) <= depth:
                end += line.lstrip()[0] in ")}]" or line.strip() == "end"
                break
            end += 1
        while end > definition.start_line and not lines[end - 1].strip():
            end -= 1
        definition.end_line = end


def nested(definitions: list[Definition]) -> list[Definition]:
    """Put each definition into the one that surrounds it; they come in the order of lines."""
    top: list[Definition] = []
    around: list[Definition] = []
    for definition in definitions:
        while around and around[-1].end_line < definition.start_line:
            around.pop()
        if around:
            definition.end_line = min(definition.end_line, around[-1].end_line)
            if around[-1].kind == "class" and definition.kind == "function":
                definition.kind = "method"
        (around[-1].inner if around else top).append(definition)
        around.append(definition)
    return top
