"""Which paths a node may change: its `writes`, read as lines of a `.gitignore` are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def forbidden(paths: Iterable[str], patterns: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the paths that no pattern allows; without patterns all are allowed."""
    if patterns is None:
        return ()
    from pathspec import PathSpec

    allowed = PathSpec.from_lines("gitignore", patterns)
    return tuple(one for one in paths if not allowed.match_file(one))


def listed(patterns: Iterable[str] | None) -> str:
    """Return patterns as people read them."""
    return ", ".join(f"`{one}`" for one in patterns or ()) or "nothing"
