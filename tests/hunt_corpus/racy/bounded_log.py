"""Two writers both see the list too long and both cut it: an entry too many is gone."""

from __future__ import annotations


class BoundedLog:
    def __init__(self, limit=2):
        self.limit = limit
        self._lines = []
        self.dropped = 0

    def write(self, line):
        self._lines.append(line)
        while len(self._lines) > self.limit:
            del self._lines[0]
            self.dropped += 1

    def tail(self, count=1):
        return self._lines[-count:]

    def drain(self):
        lines = list(self._lines)
        self._lines.clear()
        return lines

    def __len__(self):
        return len(self._lines)
