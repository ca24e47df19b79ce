"""A value as Python source, with the imports that it needs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Text", "name_of"]


@dataclass(frozen=True, slots=True)
class Text:
    """An expression and the statements that bring its names into scope."""

    text: str
    imports: frozenset[str] = frozenset()

    @staticmethod
    def joined(pattern: str, parts: list[Text]) -> Text:
        """Put the parts, joined by commas, into a pattern such as `[{}]`."""
        inner = ", ".join(part.text for part in parts)
        return Text(pattern.replace("{}", inner), frozenset().union(*(p.imports for p in parts)))


def name_of(kind: type) -> Text:
    """Return how a class is named after its import."""
    if kind.__module__ == "builtins":
        return Text(kind.__qualname__)
    top = kind.__qualname__.partition(".")[0]
    return Text(kind.__qualname__, frozenset({f"from {kind.__module__} import {top}"}))
