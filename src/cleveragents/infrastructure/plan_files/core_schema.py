"""What a plain word of YAML means: the core schema of YAML 1.2, and nothing of YAML 1.1.

So `no`, `on` and `12:30` are text, and `0o17` is 15. Reader and writer use the same table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: More digits than any number of a plan has; Python refuses to convert thousands of them.
_DIGITS_MAX: Final = 400


def _by_prefix(word: str) -> int:
    return int(word, 0)


#: Tag, pattern, first characters and meaning of each kind of plain word that is not text.
PLAIN_WORDS: Final[tuple[tuple[str, re.Pattern[str], str, Callable[[str], Any]], ...]] = (
    ("null", re.compile(r"(?:~|null|Null|NULL|)\Z"), "~nN", lambda _: None),
    (
        "bool",
        re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
        "tTfF",
        lambda word: word.lower() == "true",
    ),
    ("int", re.compile(r"[-+]?[0-9]+\Z"), "-+0123456789", int),
    ("int", re.compile(r"0o[0-7]+\Z"), "0", _by_prefix),
    ("int", re.compile(r"0x[0-9a-fA-F]+\Z"), "0", _by_prefix),
    (
        "float",
        re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"),
        "-+.0123456789",
        float,
    ),
    (
        "float",
        re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"),
        "-+.",
        lambda word: float(word.replace(".", "")),
    ),
)


def value_of(word: str) -> Any:
    """Return what a plain word means; anything without another meaning is text."""
    if len(word) <= _DIGITS_MAX:
        for _tag, pattern, _first, meaning in PLAIN_WORDS:
            if pattern.match(word):
                return meaning(word)
    return word
