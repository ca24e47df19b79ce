"""One transaction of the store, and the chain of events that it goes on with."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

_CHAIN: Final = "chain"
#: How many events one statement writes; few sizes, so that SQLite prepares each only once.
_TOGETHER: Final = (64, 8, 2, 1)

# Made once: `json.dumps` would make one for each event.
_body_json: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
# What a stranger's hand put into a row need not be JSON; then the hash differs, as it should.
_row_json: Final = json.JSONEncoder(separators=(",", ":"), default=repr).encode


class Transaction:
    """What a write may do: change projections by SQL, and append facts to the chained events.

    Events are written together: at the end of the group, or before a statement looks at them.
    """

    def __init__(self, connection: sqlite3.Connection, kept: dict[str, Any] | None = None) -> None:
        self._connection = connection
        #: What was read once for all writes of the group; whoever changes it, forgets it.
        self.memo: dict[str, Any] = {}
        #: The same, until another connection writes.
        self.kept: dict[str, Any] = {} if kept is None else kept
        end = self.kept.get(_CHAIN) or connection.execute("SELECT seq, hash FROM chain").fetchone()
        self._seq, self._hash = end
        self._began = self._seq
        self._unwritten: list[tuple[Any, ...]] = []

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Run one statement inside the transaction."""
        if self._unwritten and "events" in sql:
            self._write_events()
        return self._connection.execute(sql, values)

    def execute_each(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        """Run one statement for each row."""
        self._connection.executemany(sql, rows)

    def event(
        self,
        kind: str,
        body: Mapping[str, Any],
        *,
        at: float,
        plan: str | None = None,
        actor: str | None = None,
    ) -> int:
        """Append a fact, chained to its predecessor by its hash; return its number."""
        seq, at = self._seq + 1, float(at)  # as SQLite gives it back, or the hash would differ
        text = _body_json(body)
        row = (seq, at, kind, plan, actor, text)
        digest = chained(self._hash, row)
        self._unwritten.append((*row, digest))
        self._seq, self._hash = seq, digest
        return cast("int", seq)

    def savepoint(self) -> tuple[int, bytes]:
        """Remember where the chain stands, and let SQLite remember the rest."""
        self._write_events()
        self.execute("SAVEPOINT write")
        return self._seq, self._hash

    def release(self) -> None:
        """Have all that was done since the savepoint; it is still of the transaction."""
        self._write_events()
        self.execute("RELEASE write")

    def undo_to(self, mark: tuple[int, bytes]) -> None:
        """Go back to a savepoint, which is gone then."""
        self._unwritten.clear()
        self.execute("ROLLBACK TO write")
        self.memo.clear()
        self.kept.clear()
        self._seq, self._hash = mark
        self.execute("RELEASE write")

    def close_chain(self) -> bool:
        """Write where the chain ends, so that rows cut off its end are missed; say if it grew."""
        self._write_events()
        if self._seq == self._began:
            return False
        end = self.kept[_CHAIN] = (self._seq, self._hash)
        self.execute("UPDATE chain SET seq = ?, hash = ?", end)
        return True

    def _write_events(self) -> None:
        # Together: between two statements every thread that can run wants to, and there are many.
        rows, written = self._unwritten, 0
        for size in _TOGETHER:
            while len(rows) - written >= size:
                values = tuple(chain.from_iterable(rows[written : written + size]))
                self._connection.execute(_insert_events(size), values)
                written += size
        self._unwritten = []


def chained(previous: bytes, row: tuple[Any, ...]) -> bytes:
    """Return the hash of an event row over its predecessor's."""
    return hashlib.sha256(previous + _row_json(row).encode("ascii")).digest()


@cache
def _insert_events(count: int) -> str:
    rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * count)
    return f"INSERT INTO events VALUES {rows}"  # noqa: S608  # ours
