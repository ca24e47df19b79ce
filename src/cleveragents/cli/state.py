"""The durable store as commands open it: a read leaves no trace, a write makes what is missing."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from cleveragents.cli import output
from cleveragents.domain.errors import StoreError
from cleveragents.infrastructure.schema import APPLICATION_ID, steps
from cleveragents.infrastructure.store import Store
from cleveragents.infrastructure.store_faults import explained
from cleveragents.settings import load, root_of, store_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BUSY_S: Final = 10.0


@contextmanager
def reading() -> Iterator[sqlite3.Connection | None]:
    """Give one consistent snapshot of the store, or None when there is none yet.

    It never waits for a writer and creates no file; a store of an older version is brought up
    to date first, because its tables may not be those that are read.
    """
    path = store_path(load()[0])
    if not is_there(path):
        yield None
        return
    try:
        with closing(_connected(path)) as connection:
            if not _is_current(connection):
                Store(path).close()
            connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        raise explained(error, path) from error
    except json.JSONDecodeError as error:
        raise StoreError(
            f"The store `{path}` holds a record that cannot be read",
            code="CA6004",
            hint="Run `cleveragents audit verify`",
        ) from error


def writing() -> Store:
    """Open the store for a change; a folder that is made for it is kept out of git."""
    path = store_path(load()[0])
    # A folder that is there stays as it is, and of one that cannot be made the store speaks.
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True)
        (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")
    return Store(path)


def root() -> Path:
    """Return the tree around here: that of the repository, or the current folder."""
    return root_of()


def is_there(path: Path | None = None) -> bool:
    """Say whether there is a store; one that cannot even be looked at is, and SQLite says why."""
    try:
        (path or store_path(load()[0])).stat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def nothing(message: str, hint: str) -> int:
    """Say that there is nothing to show, which is no failure; stdout stays empty."""
    output.talk(message)
    if not is_there():
        output.talk(output.facts({"store": f"{store_path(load()[0])} is not there yet"}))
    output.talk(f"\nhint: {hint}")
    return 0


def _connected(path: Path) -> sqlite3.Connection:
    # `rw`, not `ro`: it creates no database either, and unlike a read-only connection
    # the last one to close takes the `-wal` and `-shm` files away again.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _is_current(connection: sqlite3.Connection) -> bool:
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return bool((owner, version) == (APPLICATION_ID, len(steps())))
