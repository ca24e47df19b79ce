"""Take gives the message and then empties the box: two takers get the same message."""

from __future__ import annotations


class Mailbox:
    """A box for one message."""

    def __init__(self):
        self._message = None

    def offer(self, message):
        if self._message is not None:
            return False
        self._message = message
        return True

    def take(self):
        message = self._message
        self._message = None
        return message

    def exchange(self, message):
        old = self._message
        self._message = message
        return old
