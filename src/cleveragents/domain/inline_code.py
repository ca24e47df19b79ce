"""Which arguments of a command are read as code: the script of `sh -c`, `python -c`, `perl -e`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class _Interpreter:
    """How a program is told code: an option with the code in it, or before it.

    Where in doubt the patterns match too much: what they match is refused only with data in it.
    """

    code: re.Pattern[str]
    #: Options whose next argument is a value.
    valued: re.Pattern[str]
    #: Code stands there once, and what follows it are its arguments.
    once: bool = False


_SHELL: Final = _Interpreter(
    re.compile(r"-[A-Za-z]*c[A-Za-z]*$"),
    re.compile(r"[-+][A-Za-z]*[oO][A-Za-z]*$|--(rcfile|init-file)$"),
    once=True,
)
_PYTHON: Final = _Interpreter(
    re.compile(r"-[A-Za-ln-z]*?c"), re.compile(r"-[A-Za-z]*[XW]$|--check-hash"), once=True
)
_NODE: Final = _Interpreter(
    re.compile(r"(-pe|-[ep]|--eval|--print)(=|$)"),
    re.compile(r"(-r|-C|--require|--import|--loader|--experimental-loader|--conditions)$"),
)
_OTHER: Final = _Interpreter(re.compile(r"-[A-Za-z0-9]*?[eErRB]"), re.compile(r"-[CIdl]$"))
_INTERPRETERS: Final = {
    **dict.fromkeys(("ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "sh", "zsh"), _SHELL),
    **dict.fromkeys(("runuser", "su"), _SHELL),
    **dict.fromkeys(("pypy", "python"), _PYTHON),
    **dict.fromkeys(("bun", "node", "nodejs"), _NODE),
    **dict.fromkeys(("Rscript", "julia", "lua", "perl", "php", "ruby"), _OTHER),
}
_VERSION: Final = re.compile(r"(-?\d+(\.\d+)*t?)?(\.exe)?$")


def code_arguments(argv: Sequence[str]) -> Iterator[int]:
    """Yield the places of the arguments that a program reads as code.

    The program need not be the first word: `env`, `timeout` and `xargs` run what follows them.
    """
    for at, word in enumerate(argv):
        known = _INTERPRETERS.get(_VERSION.sub("", word.rpartition("/")[2], count=1))
        if known is not None:
            yield from _code_of(known, argv, at + 1)


def _code_of(known: _Interpreter, argv: Sequence[str], start: int) -> Iterator[int]:
    """Yield the places of code among the options that begin here."""
    is_next = False
    places = iter(range(start, len(argv)))
    for at in places:
        word = argv[at]
        told = known.code.match(word)
        if told is not None or is_next:
            yield at
        is_option = len(word) > 1 and word[0] in "-+" and (word != "--" or is_next)
        if told is not None:
            # `-c code` or `-ccode`; a shell lets further options stand in between.
            is_next = told.end() == len(word)
        elif not is_option:
            if not is_next or known.once:
                return
            is_next = False
        if known.valued.match(word):
            next(places, None)
