"""Picking and changing the servers exclude one another."""

from __future__ import annotations

import threading


class NoServers(Exception):
    pass


class RoundRobin:
    def __init__(self, servers: list[str] | None = None) -> None:
        self._servers = list(servers or ["a", "b"])
        self._turn = 0
        self._lock = threading.Lock()

    def pick(self) -> str:
        with self._lock:
            count = len(self._servers)
            if count == 0:
                raise NoServers
            index = self._turn % count
            self._turn += 1
            return self._servers[index]

    def remove(self, server: str) -> bool:
        with self._lock:
            if server in self._servers:
                self._servers.remove(server)
                return True
            return False

    def add(self, server: str) -> None:
        with self._lock:
            if server not in self._servers:
                self._servers.append(server)


balancer = RoundRobin(["one", "two"])
