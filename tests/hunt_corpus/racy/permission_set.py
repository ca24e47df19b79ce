"""The set is computed from an old one and written back: a grant in between is undone."""

from __future__ import annotations

from collections.abc import Iterable


class PermissionSet:
    def __init__(self, granted: Iterable[str] = ("read",)) -> None:
        self._granted = frozenset(granted)
        self.revision = 0

    def grant(self, name: str) -> None:
        self._granted = self._granted | {name}
        self.revision += 1

    def revoke(self, name: str) -> bool:
        if name not in self._granted:
            return False
        self._granted = self._granted - {name}
        self.revision += 1
        return True

    def allows(self, name: str) -> bool:
        return name in self._granted
