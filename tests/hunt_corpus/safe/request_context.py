"""What belongs to one request is kept per thread."""

from __future__ import annotations

import threading


class RequestContext:
    def __init__(self) -> None:
        self._local = threading.local()

    def handle(self, user: str) -> str:
        """Handle one request; the same object serves all threads."""
        self._local.user = user
        self._local.trail = []
        self._note("begin")
        self._note("end")
        return f"{self._local.user}: {', '.join(self._local.trail)}"

    def _note(self, step: str) -> None:
        self._local.trail.append(f"{step} {self._local.user}")
