"""One condition guards the list and the number of connections."""

from __future__ import annotations

import threading


class Connection:
    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = False


class PoolExhausted(Exception):
    pass


class ConnectionPool:
    def __init__(self, size: int = 2) -> None:
        self.size = size
        self._idle: list[Connection] = []
        self._created = 0
        self._lock = threading.Condition()

    def acquire(self) -> Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._created >= self.size:
                raise PoolExhausted(f"all {self.size} connections are in use")
            self._created += 1
            return Connection(self._created)

    def release(self, connection: Connection) -> None:
        with self._lock:
            if connection not in self._idle:
                self._idle.append(connection)

    def warm_up(self, count: int = 1) -> int:
        with self._lock:
            while self._created < min(count, self.size):
                self._created += 1
                self._idle.append(Connection(self._created))
            return len(self._idle)
