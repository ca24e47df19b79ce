"""An edge is two entries: another thread sees only one direction of it, or a node too few."""

from __future__ import annotations


class Graph:
    def __init__(self) -> None:
        self._neighbours: dict[str, set[str]] = {}
        self._edges = 0

    def add_edge(self, a: str, b: str) -> None:
        if a not in self._neighbours:
            self._neighbours[a] = set()
        if b not in self._neighbours:
            self._neighbours[b] = set()
        if b not in self._neighbours[a]:
            self._neighbours[a].add(b)
            self._neighbours[b].add(a)
            self._edges += 1

    def remove_node(self, a: str) -> int:
        if a not in self._neighbours:
            return 0
        gone = self._neighbours.pop(a)
        for other in gone:
            self._neighbours[other].discard(a)
        self._edges -= len(gone)
        return len(gone)

    def edges(self) -> int:
        return self._edges
