"""The list of a user is made twice: the first message in it is lost."""

from __future__ import annotations


class Inbox:
    def __init__(self) -> None:
        self._messages: dict[str, list[str]] = {}

    def deliver(self, user: str, message: str) -> None:
        if user not in self._messages:
            self._messages[user] = []
        self._messages[user].append(message)

    def read(self, user: str) -> list[str]:
        messages = self._messages.get(user, [])
        self._messages[user] = []
        return messages

    def count(self, user: str) -> int:
        return len(self._messages.get(user, []))
