"""The rules are parsed at the first question: a reader finds the table half filled."""

from __future__ import annotations


class Rules:
    def __init__(self, text: str = "a=1;b=2") -> None:
        self.text = text
        self._table: dict[str, str] | None = None
        self.parsed = 0

    def _parse(self) -> dict[str, str]:
        if self._table is None:
            self._table = {}
            for rule in self.text.split(";"):
                name, _, value = rule.partition("=")
                self._table[name] = value
            self.parsed += 1
        return self._table

    def get(self, name: str = "b") -> str | None:
        return self._parse().get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._parse()))
