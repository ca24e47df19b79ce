"""Where it is worth to switch threads, and where an interpreter with its lock does so.

Between two opcodes that touch only what is local to a call, a switch shows nobody anything; so a
cut stands only before an opcode that others could notice. An interpreter with its lock looks for
other threads after calls, at the start of functions and at jumps back, and nowhere else.
"""

from __future__ import annotations

import dis
import functools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType

    from cleveragents.hunt.prove.turns import Point

__all__ = ["Cut", "cuts_of"]

_LOCAL = frozenset(
    ["BUILD_CONST_KEY_MAP", "BUILD_LIST", "BUILD_MAP", "BUILD_SET", "BUILD_SLICE", "BUILD_STRING",
     "BUILD_TUPLE", "CACHE", "COPY", "COPY_FREE_VARS", "EXTENDED_ARG", "JUMP_BACKWARD",
     "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_FORWARD", "KW_NAMES", "LOAD_ASSERTION_ERROR",
     "LOAD_CONST", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "LOAD_FAST_LOAD_FAST",
     "LOAD_CLOSURE", "MAKE_CELL", "MAKE_FUNCTION", "NOP", "POP_EXCEPT", "POP_TOP", "PRECALL",
     "PUSH_EXC_INFO", "PUSH_NULL", "RERAISE", "RESUME", "RETURN_GENERATOR", "RETURN_VALUE",
     "RETURN_CONST", "STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST", "SWAP",
     "UNPACK_SEQUENCE", "YIELD_VALUE"]
)  # fmt: skip
_LOOKS = ("CALL", "JUMP_BACKWARD", "POP_JUMP_BACKWARD", "RESUME")


class Cut(NamedTuple):
    """A place to stop a thread: after so many of its opcodes."""

    opcodes: int
    #: Whether an interpreter with its lock may switch there.
    today: bool


@functools.cache
def _names(code: CodeType) -> dict[int, str]:
    return {one.offset: one.opname for one in dis.get_instructions(code)}


def cuts_of(points: Iterable[Point], thread: int) -> list[Cut]:
    """Return the cuts of a thread in a run, in the order of their places."""
    found: list[Cut] = []
    looked = False
    count = 0
    for point in points:
        if point.thread != thread:
            continue
        name = _names(point.code).get(point.offset, "")
        if name not in _LOCAL and count:
            found.append(Cut(count, looked))
            looked = False
        count += 1
        looked = looked or name.startswith(_LOOKS)
    return found
