"""A group's messages are taken under the lock."""

from __future__ import annotations

import threading


class TopicLog:
    def __init__(self) -> None:
        self._messages: list[str] = ["m0", "m1"]
        self._offsets: dict[str, int] = {}
        self._lock = threading.Lock()

    def publish(self, message: str) -> int:
        with self._lock:
            self._messages.append(message)
            return len(self._messages) - 1

    def poll(self, group: str = "workers", limit: int = 1) -> list[str]:
        with self._lock:
            start = self._offsets.get(group, 0)
            batch = self._messages[start : start + limit]
            self._offsets[group] = start + len(batch)
            return batch

    def lag(self, group: str = "workers") -> int:
        with self._lock:
            return len(self._messages) - self._offsets.get(group, 0)

    def rewind(self, group: str = "workers") -> None:
        with self._lock:
            self._offsets.pop(group, None)
