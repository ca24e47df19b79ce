"""The terms that code and tasks are searched by."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Final

__all__ = ["terms_of", "terms_of_word"]

_WORD: Final = re.compile(r"\w+")
#: `HTTPServer_v2` has the parts HTTP, Server, v and 2.
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
#: Longer words are data.
_CHARS_MAX: Final = 64
_VOWELS: Final = frozenset("aeiouy")
#: Words of a repository are few against their uses; each is taken apart once.
_WORDS_KEPT: Final = 1 << 17


def terms_of(text: str) -> dict[str, int]:
    """Return the terms of a text with their counts.

    A word gives itself in lower case; one of several parts (`camelCase`, `snake_case`) gives
    its parts too. Parts lose their endings (`-s`, `-ing`, `-ed`, `-e`), so that `parsers` and
    `parser` meet; the whole of several parts keeps its own.
    """
    counts: dict[str, int] = {}
    for word, count in Counter(_WORD.findall(text)).items():
        for term in terms_of_word(word):
            counts[term] = counts.get(term, 0) + count
    return counts


@lru_cache(maxsize=_WORDS_KEPT)
def terms_of_word(word: str) -> tuple[str, ...]:
    """Return the terms of one word, each once; the whole word comes first."""
    if len(word) > _CHARS_MAX:
        return ()
    parts = _PART.findall(word)
    stems = [_stem(part.lower()) for part in parts if len(part) > 1]
    if len(parts) < 2:
        return tuple(stems)
    return tuple(dict.fromkeys((word.strip("_").lower(), *stems)))


def _stem(word: str) -> str:
    """Take a few endings off an English word; what is left must still look like one."""
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith("s") and word[-2] not in "sui":
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and not _VOWELS.isdisjoint(rest) and rest[-1] != "e":
            twin = len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz"
            return rest[:-1] if twin else rest
    return word[:-1] if word.endswith("e") and len(word) > 4 else word
