"""`setdefault` and `append` are one step each, and no list is ever taken away."""

from __future__ import annotations


class Inbox:
    def __init__(self) -> None:
        self._messages: dict[str, list[str]] = {}

    def deliver(self, user: str, message: str) -> None:
        self._messages.setdefault(user, []).append(message)

    def read(self, user: str) -> list[str]:
        return list(self._messages.get(user, []))

    def count(self, user: str) -> int:
        return len(self._messages.get(user, []))
