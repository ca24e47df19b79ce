"""What belongs to one request is kept on the shared object: requests see one another's user."""

from __future__ import annotations


class RequestContext:
    def __init__(self) -> None:
        self._user: str | None = None
        self._trail: list[str] = []

    def handle(self, user: str) -> str:
        """Handle one request; the same object serves all threads."""
        self._user = user
        self._trail = []
        self._note("begin")
        self._note("end")
        return f"{self._user}: {', '.join(self._trail)}"

    def _note(self, step: str) -> None:
        self._trail.append(f"{step} {self._user}")
