"""Counting and opening are under the same lock."""

from __future__ import annotations

import threading


class SharedHandle:
    """A resource that is open as long as somebody uses it."""

    def __init__(self) -> None:
        self._users = 0
        self._open = False
        self.opened = 0
        self._lock = threading.Lock()

    def acquire(self) -> int:
        with self._lock:
            if self._users == 0:
                self._open = True
                self.opened += 1
            self._users += 1
            return self._users

    def release(self) -> bool:
        """Return whether this was the last user."""
        with self._lock:
            if self._users == 0:
                raise ValueError("released more often than acquired")
            self._users -= 1
            if self._users == 0:
                self._open = False
                return True
            return False

    def is_open(self) -> bool:
        with self._lock:
            return self._open
