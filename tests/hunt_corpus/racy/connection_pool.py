"""The last idle connection is seen by two threads; one of them pops from an empty list."""

from __future__ import annotations


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

    def acquire(self) -> Connection:
        if self._idle:
            return self._idle.pop()
        if self._created >= self.size:
            raise PoolExhausted(f"all {self.size} connections are in use")
        self._created += 1
        return Connection(self._created)

    def release(self, connection: Connection) -> None:
        if connection not in self._idle:
            self._idle.append(connection)

    def warm_up(self, count: int = 1) -> int:
        while self._created < min(count, self.size):
            self._created += 1
            self._idle.append(Connection(self._created))
        return len(self._idle)
