"""The journal of an apply: all that is needed to finish it, or to take it back, from any moment.

Its name is its state. `journal.new` is not yet valid. `journal` is: from the moment it has this
name the apply will be finished, whatever dies. `journal.back` means that it will be taken back,
`journal.flipped` that the tree is new, durably.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from cleveragents.domain.errors import CleverAgentsError
from cleveragents.domain.paths import check_path
from cleveragents.infrastructure.apply.files import Rights
from cleveragents.infrastructure.apply.target import Signature

if TYPE_CHECKING:
    from cleveragents.infrastructure.apply.files import Files

_NEW: Final = "journal.new"
_FORWARD: Final = "journal"
_BACK: Final = "journal.back"
_FLIPPED: Final = "journal.flipped"
_MAGIC: Final = b"cleveragents apply 1"

#: Where a valid journal says that the tree goes, or that it is there.
Course: TypeAlias = Literal["forward", "back", "flipped"]
_COURSES: Final[dict[str, Course]] = {_FORWARD: "forward", _BACK: "back", _FLIPPED: "flipped"}


@dataclass(frozen=True, slots=True)
class Operation:
    """What happens at one path: `after` is the staged file's signature, None for a removal."""

    path: str
    #: Which of the staging folders holds the slot.
    stage: int
    #: The name of the staged file in that folder.
    slot: str
    expected: Signature | None
    after: Signature | None


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that the apply empties, as it was."""

    path: str
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Journal:
    """The whole apply as a value, sorted by path; folders stand before what is in them."""

    apply_id: str
    note: bytes
    operations: tuple[Operation, ...]
    made: tuple[str, ...]
    removed: tuple[Folder, ...]
    #: What only the process that made the staging folder could know of it.
    seal: tuple[int, int]

    def encode(self) -> bytes:
        """Return it as bytes that notice when one of them is damaged."""
        body = json.dumps(
            {
                "apply": self.apply_id,
                "note": self.note.decode("latin-1"),
                "operations": [_plain(operation) for operation in self.operations],
                "made": self.made,
                "removed": [(one.path, one.mode, one.uid, one.gid) for one in self.removed],
                "seal": self.seal,
            },
            separators=(",", ":"),
        ).encode("ascii")
        return b"%s %08x\n%s" % (_MAGIC, zlib.crc32(body), body)

    @classmethod
    def decode(cls, data: bytes) -> Journal:
        """Read it back; `ValueError` says what is wrong with it.

        Its paths are checked again: a journal may come with a tree from a stranger.
        """
        head, _, body = data.partition(b"\n")
        if head != b"%s %08x" % (_MAGIC, zlib.crc32(body)):
            raise ValueError("its checksum or version does not fit")
        plain: dict[str, Any] = json.loads(body)
        journal = cls(
            plain["apply"],
            plain["note"].encode("latin-1"),
            tuple(_operation(*fields) for fields in plain["operations"]),
            tuple(plain["made"]),
            tuple(Folder(*fields) for fields in plain["removed"]),
            tuple(plain["seal"]),
        )
        for path in (
            *(one.path for one in journal.operations),
            *(one.path for one in journal.removed),
            *journal.made,
        ):
            check_path(path)
        return journal


def prepare(files: Files, folder: int, journal: Journal) -> None:
    """Write a journal that is not yet valid, so that making it valid needs no more room."""
    files.write((folder, _NEW), journal.encode(), Rights(0o600), durable=True)


def commit(files: Files, folder: int) -> None:
    """Make the prepared journal valid: the point of no return."""
    files.move((folder, _NEW), (folder, _FORWARD))
    files.flush(folder)


def flipped(files: Files, folder: int) -> None:
    """Say durably that the tree is new: from now on nothing is taken back."""
    files.move((folder, _FORWARD), (folder, _FLIPPED))
    files.flush(folder)


def turn_back(files: Files, folder: int) -> None:
    """Decide that the apply is taken back, durably, before anything is."""
    for name in (_FORWARD, _FLIPPED):
        if files.status((folder, name)) is not None:
            files.move((folder, name), (folder, _BACK))
    files.flush(folder)


def read(files: Files, folder: int) -> tuple[Journal, Course] | None:
    """Return the valid journal and its course, None when there is none; `ValueError` says why not.

    Whatever a stranger wrote into it, it is no other error.
    """
    for name, course in _COURSES.items():
        try:
            data = files.read((folder, name))
            if data is not None:
                return Journal.decode(data), course
        except (OSError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(repr(error)) from error
        except CleverAgentsError as error:
            raise ValueError(error.message) from error
    return None


def _plain(operation: Operation) -> tuple[Any, ...]:
    expected, after = operation.expected, operation.after
    return (
        operation.path,
        operation.stage,
        operation.slot,
        None if expected is None else expected.plain(),
        None if after is None else after.plain(),
    )


def _operation(
    path: str, stage: int, slot: str, expected: list[int] | None, after: list[int] | None
) -> Operation:
    if expected is None and after is None:
        raise ValueError(f"it removes {path!r}, and does not say what it was")
    return Operation(
        path,
        stage,
        str(int(slot)),  # a number: whatever else it said would name other files
        None if expected is None else Signature(*expected),
        None if after is None else Signature(*after),
    )
