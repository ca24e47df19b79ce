"""Files as git tells of them: what one is, how it differs, and what it should be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Blob:
    """A file's mode and the id of its content."""

    mode: int
    oid: str


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A path whose file differs; of a renamed file `old_path` tells where it was."""

    path: str
    old: Blob | None
    new: Blob | None
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """A file as it should be: its mode, and its bytes or the blob that holds them already."""

    mode: int
    data: bytes = b""
    oid: str | None = None
