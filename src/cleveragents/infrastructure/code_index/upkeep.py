"""What the kept code index holds, and how to be rid of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from cleveragents.domain.errors import StoreError
from cleveragents.infrastructure.code_index.storage import Storage, cache_folder

__all__ = ["Kept", "clear", "kept"]

_BUSY_S = 2.0
_TABLES = ("contents", "files", "roots", "commits", "vectors")


@dataclass(frozen=True, slots=True)
class Kept:
    """The file of the index, and what it holds; trouble says why it cannot be told."""

    path: Path
    size_bytes: int = 0
    trees: int = 0
    files: int = 0
    trouble: str | None = None


def kept(folder: Path | None) -> Kept:
    """Look at the index of a folder, or of the user's cache folder; nothing is changed or made."""
    path = Storage(cache_folder() if folder is None else folder).path
    try:
        size = sum(one.stat().st_size for one in _parts(path) if one.is_file())
        if not path.exists():
            return Kept(path)
        with closing(_connected(path)) as connection:
            connection.execute("PRAGMA query_only = ON")
            (trees,) = connection.execute("SELECT count(*) FROM roots").fetchone()
            (files,) = connection.execute("SELECT count(*) FROM files").fetchone()
    except (OSError, sqlite3.Error) as error:
        return Kept(path, trouble=str(error))
    return Kept(path, size, trees, files)


def clear(folder: Path | None) -> Kept:
    """Delete what is kept of all trees, and return what that was.

    Other processes may use the index meanwhile: rows go, not the file, unless it is damaged.
    """
    before = kept(folder)
    if not before.path.exists():
        return before
    try:
        with closing(_connected(before.path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                connection.execute(f"DELETE FROM {table}")  # noqa: S608  # names of ours
            connection.execute("COMMIT")
            with suppress(sqlite3.Error):  # somebody reads; the room is used again
                connection.execute("VACUUM")
    except (OSError, sqlite3.Error) as error:
        _delete(before.path, error)
    return before


def _delete(path: Path, reason: Exception) -> None:
    """Delete a file that cannot be emptied: everything in it can be computed again."""
    if getattr(reason, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        raise _not_cleared(path, reason) from reason
    try:
        for part in _parts(path):
            part.unlink(missing_ok=True)
    except OSError as error:
        raise _not_cleared(path, error) from error


def _not_cleared(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"The code index `{path}` cannot be deleted: {error}",
        code="CA6006",
        facts={"index": path},
        hint="Wait until other processes are done, or delete the file yourself",
    )


def _parts(path: Path) -> tuple[Path, ...]:
    return tuple(Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm"))


def _connected(path: Path) -> sqlite3.Connection:
    # `rw` makes no file, and the last to close takes `-wal` and `-shm` away.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
