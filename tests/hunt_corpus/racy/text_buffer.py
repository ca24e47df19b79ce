"""`+=` on a string: two writers start from the same text and one addition is gone."""

from __future__ import annotations


class TextBuffer:
    def __init__(self, separator: str = "\n") -> None:
        self.separator = separator
        self._text = ""
        self._lines = 0

    def write_line(self, line: str) -> int:
        self._text += line + self.separator
        self._lines += 1
        return self._lines

    def getvalue(self) -> str:
        return self._text

    def take(self) -> str:
        text = self._text
        self._text = ""
        self._lines = 0
        return text
