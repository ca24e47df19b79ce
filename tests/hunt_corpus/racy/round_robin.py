"""The length is read, then a server is removed, then the index is used: IndexError; turns double."""

from __future__ import annotations


class NoServers(Exception):
    pass


class RoundRobin:
    def __init__(self, servers: list[str] | None = None) -> None:
        self._servers = list(servers or ["a", "b"])
        self._turn = 0

    def pick(self) -> str:
        count = len(self._servers)
        if count == 0:
            raise NoServers
        index = self._turn % count
        self._turn += 1
        return self._servers[index]

    def remove(self, server: str) -> bool:
        if server in self._servers:
            self._servers.remove(server)
            return True
        return False

    def add(self, server: str) -> None:
        if server not in self._servers:
            self._servers.append(server)


balancer = RoundRobin(["one", "two"])
