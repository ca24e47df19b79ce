"""The token and the time are taken before the lock; only the tables need it."""

from __future__ import annotations

import threading
import time
import uuid


class SessionStore:
    def __init__(self, max_age: float = 3600.0) -> None:
        self.max_age = max_age
        self._sessions: dict[str, dict[str, object]] = {}
        self._by_user: dict[str, int] = {}
        self._lock = threading.Lock()

    def login(self, user: str) -> str:
        token = uuid.uuid4().hex
        now = time.time()
        with self._lock:
            self._sessions[token] = {"user": user, "seen": now}
            self._by_user[user] = self._by_user.get(user, 0) + 1
        return token

    def touch(self, token: str) -> bool:
        now = time.time()
        with self._lock:
            session = self._sessions.get(token)
            if session is None:
                return False
            self._sessions[token] = {**session, "seen": now}
            return True

    def logout_everywhere(self, user: str) -> int:
        with self._lock:
            tokens = [t for t, s in self._sessions.items() if s["user"] == user]
            for token in tokens:
                del self._sessions[token]
            self._by_user.pop(user, None)
            return len(tokens)

    def count(self, user: str) -> int:
        with self._lock:
            return self._by_user.get(user, 0)
