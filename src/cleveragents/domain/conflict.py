"""A conflict as a value: what both sides made of one file, and where they lie in each other's way.

Nothing is lost in one: the base and both versions are kept under their ids until somebody chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

#: The first and the last line of a place in a file, from 1.
Lines: TypeAlias = tuple[int, int]


class ConflictState(StrEnum):
    """Whether somebody must still choose."""

    OPEN = "open"
    RESOLVED = "resolved"
    #: The file changed again since, or the changeset was rejected: there is nothing to choose.
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One version of the file; without a content id it is deleted."""

    changeset: str | None = None
    actor: str | None = None
    node: str | None = None
    mode: int | None = None
    content_id: str | None = None
    lines: tuple[Lines, ...] = ()

    def __str__(self) -> str:
        who = self.actor or self.node or self.changeset or "the user"
        if self.content_id is None:
            return f"{who} deleted it"
        places = ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in self.lines)
        word = "line" if len(self.lines) == 1 and self.lines[0][0] == self.lines[0][1] else "lines"
        return f"{who}, {word} {places}" if places else who


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One file that two sides changed; `ours` is the plan's tree, `theirs` came later."""

    id: str
    plan_id: str
    path: str
    #: Git's word for it, such as `contents`, `modify/delete` or `add/add`.
    kind: str
    base: Side
    ours: Side
    theirs: Side
    state: ConflictState = ConflictState.OPEN
    #: `ours`, `theirs`, or the id of the content that a person wrote.
    choice: str | None = None


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """What became of a changeset: its state, the plan's tree after it, and what is in its way."""

    changeset_id: str
    state: str
    head: str
    conflicts: tuple[Conflict, ...] = ()
