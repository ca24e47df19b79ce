"""A lease by `with`: two threads lease the same last resource."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class LeasePool:
    def __init__(self, names: tuple[str, ...] = ("a",)) -> None:
        self._free = list(names)
        self.leases = 0

    @contextmanager
    def lease(self) -> Iterator[str | None]:
        name = self._free[-1] if self._free else None
        if name is not None:
            self._free.remove(name)
            self.leases += 1
        try:
            yield name
        finally:
            if name is not None:
                self._free.append(name)

    def free(self) -> int:
        return len(self._free)
