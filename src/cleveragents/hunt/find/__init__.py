"""Find candidates by reading the source; nothing of it is run."""

from __future__ import annotations

from cleveragents.hunt.find.finder import Found, Skipped, find

__all__ = ["Found", "Skipped", "find"]
