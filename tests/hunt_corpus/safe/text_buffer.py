"""The lines are a list behind a lock; the text is joined from a copy of it."""

from __future__ import annotations

import threading


class TextBuffer:
    def __init__(self, separator: str = "\n") -> None:
        self.separator = separator
        self._parts: list[str] = []
        self._lock = threading.Lock()

    def write_line(self, line: str) -> int:
        with self._lock:
            self._parts.append(line)
            return len(self._parts)

    def getvalue(self) -> str:
        with self._lock:
            parts = tuple(self._parts)
        return "".join(part + self.separator for part in parts)

    def take(self) -> str:
        with self._lock:
            parts, self._parts = self._parts, []
        return "".join(part + self.separator for part in parts)
