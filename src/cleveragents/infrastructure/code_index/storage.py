"""Keeps features, and which file had which content, in one SQLite file of the cache folder."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from zlib import crc32

from cleveragents.infrastructure.code_index.features import FORMAT, opened, sealed
from cleveragents.infrastructure.code_index.freshness import Mark
from cleveragents.infrastructure.code_index.segment import Content, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["Row", "Storage", "cache_folder"]

T = TypeVar("T")

#: What nobody used for so long is dropped.
DAYS_KEPT: Final = 30
_APPLICATION_ID: Final = 0x43414958  # "CAIX"
_BUSY_S: Final = 2.0
#: SQLite takes no more values than this in one statement, whatever its version.
_VALUES_MAX: Final = 900
_SCHEMA: Final = f"""
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS contents (
  key BLOB PRIMARY KEY, day INTEGER NOT NULL, terms BLOB NOT NULL, card BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS roots (
  number INTEGER PRIMARY KEY, root BLOB NOT NULL UNIQUE, day INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS files (
  root INTEGER NOT NULL, path TEXT NOT NULL,
  size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL, key BLOB NOT NULL, checksum INTEGER NOT NULL,
  PRIMARY KEY (root, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS commits (
  id BLOB PRIMARY KEY, day INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (
  model BLOB NOT NULL, key BLOB NOT NULL, day INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (model, key));
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""


class Row(NamedTuple):
    """A file with this mark had the content of this name."""

    mark: Mark
    key: bytes
    #: Whether the mark is old enough to be trusted; only such rows are stored.
    settled: bool


def cache_folder() -> Path:
    """Return where the user's machine keeps what can be computed again."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(told):  # noqa: PTH117  # the standard ignores relative ones
        return Path(told) / "cleveragents"
    home = Path.home()
    caches = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return caches / "cleveragents"


class Storage:
    """The kept features; every method is one transaction on a connection of its own.

    So any number of threads and processes may use one, and a killed one leaves nothing half done.
    What cannot be read counts as not kept, and what cannot be written is not kept: `trouble`
    says why. A damaged file is replaced by an empty one; checksums find what SQLite does not.
    """

    def __init__(self, folder: Path) -> None:
        self.path: Path = folder / f"code-index-{FORMAT}.sqlite3"
        #: Why nothing is kept at the moment; one reference, replaced as a whole.
        self.trouble: str | None = None

    # -- contents ------------------------------------------------------------------------

    def contents(self, keys: Iterable[bytes]) -> dict[bytes, Content]:
        """Return what is kept of these contents."""

        def work(connection: sqlite3.Connection) -> dict[bytes, Content]:
            found: dict[bytes, Content] = {}
            asked = "SELECT key, terms, card FROM contents WHERE key IN"
            for key, terms, card in _rows(connection, asked, keys):
                whole = unpacked(terms)
                if whole is not None and opened(card) is not None:
                    found[key] = Content(whole, card)
            return found

        return self._asked(work, {})

    def keep(
        self,
        root: str,
        contents: Mapping[bytes, tuple[bytes, bytes]],
        rows: Mapping[str, Row],
        gone: Iterable[str],
        *,
        day: int,
    ) -> None:
        """Keep contents (packed terms and card) and what the files of a root hold, at once."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "REPLACE INTO contents VALUES (?, ?, ?, ?)",
                [(key, day, terms, card) for key, (terms, card) in contents.items()],
            )
            number = _root_number(connection, root, day)
            connection.executemany(
                "REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (number, path, *row.mark, row.key, _checksum(path, row.mark, row.key))
                    for path, row in rows.items()
                ],
            )
            connection.executemany(
                "DELETE FROM files WHERE root = ? AND path = ?", [(number, path) for path in gone]
            )
            connection.execute("COMMIT")

        self._asked(work, None, writing=True)

    def rows(self, root: str, *, day: int) -> dict[str, Row]:
        """Return what the files of a root held; once a day, note that it was used."""

        def work(connection: sqlite3.Connection) -> dict[str, Row]:
            found = connection.execute(
                "SELECT number, day FROM roots WHERE root = ?", (os.fsencode(root),)
            ).fetchone()
            if found is None:
                return {}
            number, seen = found
            kept = connection.execute(
                "SELECT path, size, mtime_ns, ctime_ns, inode, key, checksum FROM files"
                " WHERE root = ?",
                (number,),
            )
            rows = {
                path: Row(Mark(*mark), key, settled=True)
                for path, *mark, key, checksum in kept
                if _checksum(path, Mark(*mark), key) == checksum
            }
            if seen != day:
                _tend(connection, number, day)
            return rows

        return self._asked(work, {})

    # -- commits -------------------------------------------------------------------------

    def commits(self, ids: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return what is kept of these commits."""

        def work(connection: sqlite3.Connection) -> dict[bytes, bytes]:
            rows = _rows(connection, "SELECT id, body FROM commits WHERE id IN", ids)
            bodies = ((name, opened(kept)) for name, kept in rows)
            return {name: body for name, body in bodies if body is not None}

        return self._asked(work, {})

    def keep_commits(self, bodies: Mapping[bytes, bytes], *, day: int) -> None:
        """Keep what was read of commits."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "REPLACE INTO commits VALUES (?, ?, ?)",
                [(name, day, sealed(body)) for name, body in bodies.items()],
            )
            connection.execute("COMMIT")

        self._asked(work, None, writing=True)

    # -- vectors -------------------------------------------------------------------------

    def vectors(self, model: bytes, keys: Iterable[bytes], *, day: int) -> dict[bytes, bytes]:
        """Return what is kept of these contents for a model; note that it was used."""

        def work(connection: sqlite3.Connection) -> dict[bytes, bytes]:
            found: dict[bytes, bytes] = {}
            used: list[bytes] = []
            asked = "SELECT key, day, body FROM vectors WHERE model = ? AND key IN"
            for key, seen, kept in _rows(connection, asked, keys, model):
                body = opened(kept)
                if body is not None:
                    found[key] = body
                    used += [key] if seen != day else []
            if used:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(
                    "UPDATE vectors SET day = ? WHERE model = ? AND key = ?",
                    [(day, model, key) for key in used],
                )
                connection.execute("COMMIT")
            return found

        return self._asked(work, {})

    def keep_vectors(self, model: bytes, bodies: Mapping[bytes, bytes], *, day: int) -> None:
        """Keep the vectors that a model gave to contents."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "REPLACE INTO vectors VALUES (?, ?, ?, ?)",
                [(model, key, day, sealed(body)) for key, body in bodies.items()],
            )
            connection.execute("COMMIT")

        self._asked(work, None, writing=True)

    # -- the file ------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the file open meanwhile: the last to close it would fold in its log each time."""
        with ExitStack() as stack:
            with suppress(sqlite3.Error, OSError, ValueError):  # told by who reads or writes
                stack.enter_context(closing(self._opened()))
            yield

    def _asked(
        self, work: Callable[[sqlite3.Connection], T], otherwise: T, *, writing: bool = False
    ) -> T:
        """Return what the work gives; an error ends it, and is told by `trouble`."""
        try:
            with closing(self._opened()) as connection:
                answer = work(connection)
        except (sqlite3.Error, OSError, ValueError) as error:
            self.trouble = f"The code index is not kept in `{self.path}`: {error}"
            if _is_damage(error):
                self._remove()
            return otherwise
        if writing:  # a file that can be read need not take more
            self.trouble = None
        return answer

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            owner = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if (owner, version) == (0, 0):
                connection.executescript(_SCHEMA)
            elif (owner, version) != (_APPLICATION_ID, FORMAT):
                raise ValueError("it is of another program or version")  # noqa: TRY301  # one place closes
        except BaseException:
            connection.close()
            raise
        return connection

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{self.path}{suffix}").unlink()


def _is_damage(error: Exception) -> bool:
    damage = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    # The lowest byte says what, the others tell more of it.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in damage


def _rows(
    connection: sqlite3.Connection, asked: str, keys: Iterable[bytes], *before: bytes
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of many keys, as many of them at once as a statement takes."""
    left = list(keys)
    while left:
        some, left = left[:_VALUES_MAX], left[_VALUES_MAX:]
        marks = ",".join("?" * len(some))
        yield from connection.execute(f"{asked} ({marks})", (*before, *some))


def _checksum(path: str, mark: Mark, key: bytes) -> int:
    return crc32(repr((path, mark, key)).encode())


def _root_number(connection: sqlite3.Connection, root: str, day: int) -> int:
    name = os.fsencode(root)
    connection.execute("INSERT OR IGNORE INTO roots (root, day) VALUES (?, ?)", (name, day))
    number = connection.execute("SELECT number FROM roots WHERE root = ?", (name,)).fetchone()[0]
    return int(number)


def _tend(connection: sqlite3.Connection, root: int, day: int) -> None:
    """Note that a root and its contents are used, and drop what was not used for long."""
    oldest = day - DAYS_KEPT
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE roots SET day = ? WHERE number = ?", (day, root))
    connection.execute(
        "UPDATE contents SET day = ? WHERE key IN (SELECT key FROM files WHERE root = ?)",
        (day, root),
    )
    connection.execute(
        "DELETE FROM files WHERE root IN (SELECT number FROM roots WHERE day < ?)", (oldest,)
    )
    connection.execute("DELETE FROM roots WHERE day < ?", (oldest,))
    connection.execute("DELETE FROM contents WHERE day < ?", (oldest,))
    connection.execute("DELETE FROM commits WHERE day < ?", (oldest,))
    connection.execute("DELETE FROM vectors WHERE day < ?", (oldest,))
    connection.execute("COMMIT")
    connection.execute("PRAGMA incremental_vacuum").fetchall()
