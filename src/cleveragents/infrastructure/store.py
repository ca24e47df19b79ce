"""The durable store: one SQLite file, one writer thread, many callers in one commit."""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from cleveragents.domain.errors import RequestError, StoreError
from cleveragents.infrastructure.savepoints import Raised, alone
from cleveragents.infrastructure.schema import migrate
from cleveragents.infrastructure.store_faults import explained
from cleveragents.infrastructure.syncing import Syncing
from cleveragents.infrastructure.transaction import Transaction
from cleveragents.infrastructure.write_queue import WriteQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Self

T = TypeVar("T")

#: How many writes may wait before callers wait to hand in theirs.
QUEUE_MAX: Final = 10_000
#: How many writes share one commit at most, so that nobody waits for an endless one.
GROUP_MAX: Final = 1_000
#: How long those of the last group have to come back: half of what its commit took, and at most
#: so much. One commit for all of them is worth that; who comes later, or after one, never waits.
_LINGER_S_MAX: Final = 0.005
_BUSY_S: Final = 10.0
_JOIN_S: Final = 30.0


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
        self._fault = fault or _no_fault
        self._connection = self._opened()
        self._name = str(path)
        self._file = _identity(self._name)
        self._queue: WriteQueue[Ticket[Any]] = WriteQueue(queue_max)
        # Of the writer thread alone, all four: what is kept holds for one version of the file.
        self._last = (1, 0.0)  # the size of the last group, and until when it may come back
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
        if not self._queue.put(ticket):
            raise _closed("writes")
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
        self._queue.close()
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
                    began_s = time.monotonic()
                    self._commit(group)
                    ended_s = time.monotonic()
                    linger_s = min((ended_s - began_s) / 2, _LINGER_S_MAX)
                    self._last = len(group), ended_s + linger_s
                else:
                    self._syncing.catch_up()
        finally:
            self._connection.close()

    def _next_group(self) -> list[Ticket[Any]]:
        """Return what waits; nothing when the store closes, or when it is time for a sync."""
        size, until_s = self._last
        linger_s = until_s - time.monotonic()
        if size > 1 and linger_s > 0:
            self._queue.wait(size, linger_s)
        self._queue.wait(1, self._syncing.due_in_s)
        return self._queue.take(GROUP_MAX)

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
