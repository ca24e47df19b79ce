"""Writers hold the lock while they replace the set; readers look at one immutable set."""

from __future__ import annotations

import threading
from collections.abc import Iterable


class PermissionSet:
    def __init__(self, granted: Iterable[str] = ("read",)) -> None:
        self._granted = frozenset(granted)
        self.revision = 0
        self._lock = threading.Lock()

    def grant(self, name: str) -> None:
        with self._lock:
            self._granted = self._granted | {name}
            self.revision += 1

    def revoke(self, name: str) -> bool:
        with self._lock:
            if name not in self._granted:
                return False
            self._granted = self._granted - {name}
            self.revision += 1
            return True

    def allows(self, name: str) -> bool:
        return name in self._granted
