"""The offset is read, the messages are taken, the offset is written: messages come twice."""

from __future__ import annotations


class TopicLog:
    def __init__(self) -> None:
        self._messages: list[str] = ["m0", "m1"]
        self._offsets: dict[str, int] = {}

    def publish(self, message: str) -> int:
        self._messages.append(message)
        return len(self._messages) - 1

    def poll(self, group: str = "workers", limit: int = 1) -> list[str]:
        start = self._offsets.get(group, 0)
        batch = self._messages[start : start + limit]
        self._offsets[group] = start + len(batch)
        return batch

    def lag(self, group: str = "workers") -> int:
        return len(self._messages) - self._offsets.get(group, 0)

    def rewind(self, group: str = "workers") -> None:
        self._offsets.pop(group, None)
