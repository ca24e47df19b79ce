"""What kind of file a path names, and how much that kind is worth to somebody who changes code."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["worth"]

_CODE: Final = frozenset(
    re.findall(
        r"\w+",
        "bash c cc cjs cpp cs cxx dart erl ex exs go h hpp hs java jl js jsx kt lua m mjs ml mm"
        " php pl proto py pyi r rb rs scala sh sql svelte swift ts tsx vue zig",
    )
)
_TEST: Final = re.compile(
    r"(^|/)(tests?|testing|__tests__|specs?|e2e|fixtures?|testdata)/"
    r"|(^|/)(test_[^/]*|conftest\.py)$"
    r"|[_.](tests?|spec)\.[a-z]+$",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(
    r"(^|/)(docs?|docs?_src|examples?|samples?|demos?|benchmarks?|scripts?|tutorials?)/",
    re.IGNORECASE,
)
#: A task is done in the code; what speaks of the code holds the same words, and more of them.
_TEST_WORTH: Final = 0.3
_TEXT_WORTH: Final = 0.3
_ASIDE_WORTH: Final = 0.5
_PATHS_KEPT: Final = 1 << 14


@lru_cache(maxsize=_PATHS_KEPT)
def worth(path: str) -> float:
    """Return a factor for a file's score: 1 for the code itself, less for tests, texts, examples.

    It holds for guesses; a file that the user names is wanted whatever its kind.
    """
    _, dot, ending = path.rpartition("/")[2].rpartition(".")
    factor = 1.0 if dot and ending.lower() in _CODE else _TEXT_WORTH
    if _TEST.search(path):
        factor *= _TEST_WORTH
    if _ASIDE.search(path):
        factor *= _ASIDE_WORTH
    return factor
