"""Reading and emptying are one step."""

from __future__ import annotations

import threading


class Mailbox:
    """A box for one message."""

    def __init__(self):
        self._message = None
        self._lock = threading.Lock()

    def offer(self, message):
        with self._lock:
            if self._message is not None:
                return False
            self._message = message
            return True

    def take(self):
        with self._lock:
            message = self._message
            self._message = None
            return message

    def exchange(self, message):
        with self._lock:
            old = self._message
            self._message = message
            return old
