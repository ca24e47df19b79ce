"""`touch` reads and writes a session that `expire` deletes in between; a logout is undone."""

from __future__ import annotations

import time
import uuid


class SessionStore:
    def __init__(self, max_age: float = 3600.0) -> None:
        self.max_age = max_age
        self._sessions: dict[str, dict[str, object]] = {}
        self._by_user: dict[str, int] = {}

    def login(self, user: str) -> str:
        token = uuid.uuid4().hex
        self._sessions[token] = {"user": user, "seen": time.time()}
        self._by_user[user] = self._by_user.get(user, 0) + 1
        return token

    def touch(self, token: str) -> bool:
        session = self._sessions.get(token)
        if session is None:
            return False
        self._sessions[token] = {**session, "seen": time.time()}
        return True

    def logout_everywhere(self, user: str) -> int:
        tokens = [t for t, s in self._sessions.items() if s["user"] == user]
        for token in tokens:
            del self._sessions[token]
        self._by_user.pop(user, None)
        return len(tokens)

    def count(self, user: str) -> int:
        return self._by_user.get(user, 0)
