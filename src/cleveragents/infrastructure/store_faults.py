"""What SQLite says when it cannot, in our words."""

from __future__ import annotations

import sqlite3
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_CORRUPT: Final = (
    "CA6004",
    "is damaged or no SQLite database",
    "Put back a backup, or move the file away to start anew",
)
_LOCKED: Final = (
    "CA6005",
    "is locked by another program",
    "Wait until that program has finished, then try again",
)
# Primary result codes of SQLite: code, what is the matter, the way out.
_FAULTS: Final[Mapping[int, tuple[str, str, str]]] = MappingProxyType(
    {
        sqlite3.SQLITE_FULL: ("CA6003", "has no room to grow: the disk is full", "Free some room"),
        sqlite3.SQLITE_CORRUPT: _CORRUPT,
        sqlite3.SQLITE_NOTADB: _CORRUPT,
        sqlite3.SQLITE_BUSY: _LOCKED,
        sqlite3.SQLITE_LOCKED: _LOCKED,
        sqlite3.SQLITE_READONLY: (
            "CA6006",
            "cannot be written",
            "Make the file and its folder writable",
        ),
        sqlite3.SQLITE_CANTOPEN: (
            "CA6007",
            "cannot be opened",
            "Check that its folder exists and is writable",
        ),
    }
)
_ANY: Final = ("CA6008", "cannot be read or written", "Check the disk, then try again")


def explained(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the error of ours that says what SQLite met, and that nothing was half-written."""
    extended = getattr(error, "sqlite_errorcode", None) or 0
    code, matter, hint = _FAULTS.get(extended & 0xFF, _ANY)
    return StoreError(
        f"The store `{path}` {matter}",
        code=code,
        facts={"sqlite": getattr(error, "sqlite_errorname", type(error).__name__), "detail": error},
        hint=hint,
    )
