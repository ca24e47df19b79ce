"""All special methods take the lock; iteration walks over a copy."""

from __future__ import annotations

import threading
from collections.abc import Iterator, MutableMapping
from typing import Any


class VersionedMap(MutableMapping[str, Any]):
    """A mapping that counts its changes."""

    def __init__(self) -> None:
        self._data: dict[str, Any] = {}
        self.version = 0
        self._lock = threading.Lock()

    def __getitem__(self, key: str) -> Any:
        with self._lock:
            return self._data[key]

    def __setitem__(self, key: str, value: Any) -> None:
        with self._lock:
            self._data[key] = value
            self.version = self.version + 1

    def __delitem__(self, key: str) -> None:
        with self._lock:
            del self._data[key]
            self.version = self.version + 1

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(tuple(self._data))

    def __len__(self) -> int:
        with self._lock:
            return len(self._data)
