"""A decorator takes the lock of the object around each public method."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def synchronized(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def locked(self: AuditLog, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return locked


@dataclass(frozen=True)
class Entry:
    text: str
    previous: str
    digest: str


class AuditLog:
    """An append-only log in which every entry seals the one before it."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._lock = threading.Lock()

    @synchronized
    def append(self, text: str) -> str:
        previous = self._entries[-1].digest if self._entries else ""
        digest = hashlib.sha256((previous + text).encode()).hexdigest()[:12]
        self._entries.append(Entry(text, previous, digest))
        return digest

    @synchronized
    def verify(self) -> bool:
        previous = ""
        for entry in self._entries:
            if entry.previous != previous:
                return False
            previous = entry.digest
        return True

    @synchronized
    def last(self) -> Entry | None:
        return self._entries[-1] if self._entries else None
