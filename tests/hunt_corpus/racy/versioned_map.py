"""The version and the value are written apart: two writers make one version of two changes."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any


class VersionedMap(MutableMapping[str, Any]):
    """A mapping that counts its changes."""

    def __init__(self) -> None:
        self._data: dict[str, Any] = {}
        self.version = 0

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._data[key] = value
        self.version = self.version + 1

    def __delitem__(self, key: str) -> None:
        del self._data[key]
        self.version = self.version + 1

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)
