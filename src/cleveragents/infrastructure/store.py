"""The durable store: one SQLite file, one writer thread, many callers in one commit."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import sqlite3
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from cleveragents.domain.errors import RequestError, StoreError
from cleveragents.infrastructure.savepoints import Raised, alone
from cleveragents.infrastructure.schema import migrate
from cleveragents.infrastructure.store_faults import explained
from cleveragents.infrastructure.syncing import Syncing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Self

T = TypeVar("T")

#: How many writes may wait before callers wait to hand in theirs.
QUEUE_MAX: Final = 10_000
#: How many writes share one commit at most, so that nobody waits for an endless one.
GROUP_MAX: Final = 1_000
_BUSY_S: Final = 10.0
_JOIN_S: Final = 30.0
_CHAIN: Final = "chain"

# Made once: `json.dumps` would make one for each event.
_body_json: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
# What a stranger's hand put into a row need not be JSON; then the hash differs, as it should.
_row_json: Final = json.JSONEncoder(separators=(",", ":"), default=repr).encode


class Transaction:
    """What a write may do: change projections by SQL, and append facts to the chained events."""

    def __init__(self, connection: sqlite3.Connection, kept: dict[str, Any] | None = None) -> None:
        self._connection = connection
        #: What was read once for all writes of the group; whoever changes it, forgets it.
        self.memo: dict[str, Any] = {}
        #: The same, until another connection writes.
        self.kept: dict[str, Any] = {} if kept is None else kept
        end = self.kept.get(_CHAIN) or connection.execute("SELECT seq, hash FROM chain").fetchone()
        self._seq, self._hash = end
        self._began = self._seq

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Run one statement inside the transaction."""
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
        digest = chained(self._hash, (seq, at, kind, plan, actor, text))
        self.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)",
            (seq, at, kind, plan, actor, text, digest),
        )
        self._seq, self._hash = seq, digest
        return cast("int", seq)

    def savepoint(self) -> tuple[int, bytes]:
        """Remember where the chain stands, and let SQLite remember the rest."""
        self.execute("SAVEPOINT write")
        return self._seq, self._hash

    def undo_to(self, mark: tuple[int, bytes]) -> None:
        """Go back to a savepoint."""
        self.execute("ROLLBACK TO write")
        self.memo.clear()
        self.kept.clear()
        self._seq, self._hash = mark

    def close_chain(self) -> bool:
        """Write where the chain ends, so that rows cut off its end are missed; say if it grew."""
        if self._seq == self._began:
            return False
        end = self.kept[_CHAIN] = (self._seq, self._hash)
        self.execute("UPDATE chain SET seq = ?, hash = ?", end)
        return True


def chained(previous: bytes, row: tuple[Any, ...]) -> bytes:
    """Return the hash of an event row over its predecessor's."""
    return hashlib.sha256(previous + _row_json(row).encode("ascii")).digest()


class Ticket(Generic[T]):
    """A write that was handed in; `result` waits for the commit that holds it."""

    __slots__ = ("_error", "_finished", "_value", "sync", "write")

    def __init__(self, write: Callable[[Transaction], T], *, sync: bool = True) -> None:
        self.write = write
        self.sync = sync
        self._value: T | None = None
        self._error: BaseException | None = None
        # A bare lock as a latch: held until the write is answered.
        self._finished = threading.Lock()
        self._finished.acquire()

    def result(self, timeout_s: float = -1.0) -> T:
        """Wait for the answer: the value of the write, or the error that kept it out."""
        if not self._finished.acquire(timeout=timeout_s):
            raise StoreError(f"The store did not answer within {timeout_s} s", code="CA6005")
        self._finished.release()
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def answer(self, value: T) -> None:
        """Tell the caller that its write is durable."""
        self._value = value
        self._finished.release()

    def refuse(self, error: BaseException) -> None:
        """Tell the caller that its write is not in the store."""
        self._error = error
        self._finished.release()


class Store:
    """One SQLite file (WAL, `synchronous=FULL`) that one thread writes, for any number of callers.

    A caller is answered only after the commit that holds its write is on the disk,
    and callers that wait at the same time share one commit.
    Whoever does not ask for the disk (`sync=False`) is answered after the commit: everybody sees
    the write, and it survives the death of all processes; that of the machine it survives with
    the next write that is synced, by whomever, and after `SYNC_S` without one. Writes reach the
    disk in their order: if one is there, all before it are.
    A write that raises is undone alone; its neighbours in the group are not harmed.
    Reads take a connection of their own and never wait for the writer.
    Several processes may open one file: each has its own writer, and SQLite orders them.
    """

    def __init__(
        self,
        path: Path,
        *,
        queue_max: int = QUEUE_MAX,
        fault: Callable[[str], object] | None = None,
    ) -> None:
        if queue_max < 1:
            raise RequestError(f"`queue_max` must be a whole number from 1, got {queue_max!r}")
        self.path = path
        self._queue_max = queue_max
        self._fault = fault or _no_fault
        self._connection = self._opened()
        self._name = str(path)
        self._file = _identity(self._name)
        self._changed = threading.Condition()  # guards: _queue, _closing
        self._queue: deque[Ticket[Any]] = deque()
        self._closing = False
        # Of the writer thread alone, all three: what is kept holds for one version of the file.
        self._syncing = Syncing(self._connection, path)
        self._kept: dict[str, Any] = {}
        self._version: int | None = None
        self._readers_lock = threading.Lock()  # guards: _readers
        self._readers: list[sqlite3.Connection] | None = []
        # A daemon, so that a store that nobody closes does not keep the interpreter alive;
        # it still writes what was accepted, because the interpreter closes it on its way out.
        self._writer = threading.Thread(target=self._run, name="ca-store-writer", daemon=True)
        self._writer.start()
        atexit.register(self.close)

    # -- writing ---------------------------------------------------------------------------

    def write(self, write: Callable[[Transaction], T], *, sync: bool = True) -> T:
        """Do a write and return its value once it is durable; see `Store` about `sync`."""
        return self.submit(write, sync=sync).result()

    def submit(self, write: Callable[[Transaction], T], *, sync: bool = True) -> Ticket[T]:
        """Hand in a write without waiting for it; wait only while too many others wait."""
        ticket: Ticket[T] = Ticket(write, sync=sync)
        with self._changed:
            self._changed.wait_for(lambda: self._closing or len(self._queue) < self._queue_max)
            if self._closing:
                raise _closed("writes")
            self._queue.append(ticket)
            self._changed.notify_all()
        return ticket

    # -- reading ---------------------------------------------------------------------------

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Give a read-only connection on one consistent snapshot, for the length of the block."""
        with self._readers_lock:
            if self._readers is None:
                raise _closed("reads")
            connection = self._readers.pop() if self._readers else None
        try:
            connection = connection or self._reader()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        finally:
            if connection is not None:
                self._keep_reader(connection)

    # -- ending ----------------------------------------------------------------------------

    def close(self) -> None:
        """Write what was accepted, then stop; closing twice is fine."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._writer.join(_JOIN_S)
        atexit.unregister(self.close)
        with self._readers_lock:
            readers, self._readers = self._readers or [], None
        for connection in readers:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the writer thread -----------------------------------------------------------------

    def _run(self) -> None:
        try:
            while (group := self._next_group()) or self._syncing.due_in_s is not None:
                if group:
                    self._commit(group)
                else:
                    self._syncing.catch_up()
        finally:
            self._connection.close()

    def _next_group(self) -> list[Ticket[Any]]:
        """Return what waits; nothing when the store closes, or when it is time for a sync."""
        due_in_s = self._syncing.due_in_s
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing, due_in_s)
            group = [self._queue.popleft() for _ in range(min(len(self._queue), GROUP_MAX))]
            self._changed.notify_all()
        return group

    def _commit(self, group: list[Ticket[Any]]) -> None:
        """Write a group in one commit; whatever goes wrong, harm as few of them as possible."""
        writes = [ticket.write for ticket in group]
        try:
            self._syncing.prepare(wait=any(ticket.sync for ticket in group))
            try:
                answers = self._attempt(writes)
            except Exception:  # noqa: BLE001  # some write raised: each gets its own savepoint now
                answers = self._attempt([alone(write) for write in writes])
        except BaseException as error:  # noqa: BLE001  # whoever waits must be answered
            if len(group) > 1:
                # SQLite gave the whole transaction up, as it does on a full disk.
                for ticket in group:
                    self._commit([ticket])
            else:
                group[0].refuse(self._explained(error))
            return
        self._fault("after-commit")
        for ticket, answer in zip(group, answers, strict=True):
            if isinstance(answer, Raised):
                ticket.refuse(answer.error)
            else:
                ticket.answer(answer)

    def _attempt(self, writes: list[Callable[[Transaction], Any]]) -> list[Any]:
        self._fault("before-begin")
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            transaction = Transaction(self._connection, self._kept_until_now())
            answers = []
            for write in writes:
                self._fault("before-write")
                answers.append(write(transaction))
            has_events = transaction.close_chain()
            self._fault("before-commit")
            self._refuse_if_gone()
            self._connection.execute("COMMIT")
            self._syncing.committed(surely=has_events)
        except BaseException:
            self._kept.clear()
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return answers

    def _kept_until_now(self) -> dict[str, Any]:
        """Return what is remembered, unless another process wrote meanwhile."""
        # It changes with every commit of another connection, and inside a transaction not at all.
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            self._kept.clear()
            self._version = version
        return self._kept

    def _refuse_if_gone(self) -> None:
        # SQLite would go on writing into a file that has no name any more, and say nothing.
        if _identity(self._name) != self._file:
            raise StoreError(
                f"The store `{self.path}` was deleted or replaced while it was open",
                code="CA6007",
                hint="Put the file back from a backup, or start again to make a new one",
            )

    def _explained(self, error: BaseException) -> BaseException:
        return explained(error, self.path) if isinstance(error, sqlite3.Error) else error

    # -- opening ---------------------------------------------------------------------------

    def _opened(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"The folder `{self.path.parent}` of the store cannot be made: {error.strerror}",
                code="CA6007",
                hint="Name another file in the setting `store`",
            ) from error
        connection = None
        try:
            connection = self._connected()
            # First see whether the file is ours: the journal's mode is kept in the file.
            migrate(connection)
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise explained(error, self.path) from error
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        return connection

    def _reader(self) -> sqlite3.Connection:
        connection = self._connected()
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _keep_reader(self, connection: sqlite3.Connection) -> None:
        with self._readers_lock:
            if self._readers is not None:
                self._readers.append(connection)
                return
        connection.close()

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  # asked for with every commit
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _closed(what: str) -> StoreError:
    return StoreError(f"The store is closed and takes no more {what}", code="CA6001")


def _no_fault(_: str) -> None:
    """Do nothing: tests put something here that fails or dies at a named point."""
