"""The shape of the store: numbered steps, forward only, each recorded when it was taken.

A step is a file `migrations/NNNN_name.sql`; never change one that was released, add the next.
"""

from __future__ import annotations

import sqlite3
import time
from functools import cache
from importlib.resources import files
from typing import Final

from cleveragents.domain.errors import StoreError

#: Marks a SQLite file as ours ("CLVR").
APPLICATION_ID: Final = 0x434C5652


@cache
def steps() -> tuple[tuple[str, str], ...]:
    """Return the name and the SQL of every step, in order."""
    folder = files("cleveragents.infrastructure") / "migrations"
    found = sorted(
        (one.name.removesuffix(".sql"), one.read_text(encoding="utf-8"))
        for one in folder.iterdir()
        if one.name.endswith(".sql")
    )
    return tuple(found)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a file to the newest shape in one transaction, or refuse it unchanged."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version_of_ours(connection)
        for number, (name, script) in enumerate(steps()[version:], version + 1):
            _take(connection, number, name, script)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version_of_ours(connection: sqlite3.Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    empty = connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None
    if owner != APPLICATION_ID and not empty:
        raise StoreError(
            "The file is a SQLite database of another program",
            code="CA6002",
            hint="Name another file in the setting `store`",
        )
    if version > len(steps()):
        raise StoreError(
            f"The store has version {version}, newer than {len(steps())}, the newest known here",
            code="CA6002",
            facts={"version": version, "known": len(steps())},
            hint="Install the version of CleverAgents that wrote it, or a newer one",
        )
    return version


def _take(connection: sqlite3.Connection, number: int, name: str, script: str) -> None:
    if number == 1:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(
            "CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, at REAL)"
        )
    for statement in _statements(script):
        connection.execute(statement)
    connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (number, name, time.time()))
    connection.execute(f"PRAGMA user_version = {number}")


def _statements(script: str) -> list[str]:
    # Not `executescript`: it commits what stands open, and half a step must never stay.
    statements, lines = [], []
    for line in script.splitlines():
        lines.append(line)
        if sqlite3.complete_statement("\n".join(lines)):
            statements.append("\n".join(lines))
            lines = []
    return statements
