"""Where a file stands among modules: its dotted name, and the folder that is to be searched."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

__all__ = ["module_of"]


def module_of(
    path: str, is_package: Callable[[str], bool], imported: AbstractSet[str], level: int = 0
) -> tuple[str, str] | None:
    """Return the import root and the dotted name of a file, or None if no import can name it.

    A folder that `is_package` knows is one. One without may be one, too: below a folder `src`,
    where the source imports it by its dotted name, or where `level` relative dots lead out of it.
    """
    folder, name = posixpath.split(path)
    stem = name.removesuffix(".py")
    parts = folder.split("/") if folder else []
    top = len(parts)
    while top and is_package("/".join(parts[:top])):
        top -= 1
    top = min(top, max(0, len(parts) - level))
    top = _above(parts, top, stem, imported)
    dotted = [*parts[top:], *([] if stem == "__init__" else [stem])]
    if not dotted or not all(part.isidentifier() for part in dotted):
        return None
    return "/".join(parts[:top]) or ".", ".".join(dotted)


def _above(parts: list[str], top: int, stem: str, imported: AbstractSet[str]) -> int:
    """Return how many folders stand above the top package, counting those without a file."""
    if "src" in parts[:top]:
        below = len(parts[:top]) - parts[:top][::-1].index("src")
        if all(part.isidentifier() for part in parts[below:]):
            return below
    for start in range(top):
        dotted = [*parts[start:], *([] if stem == "__init__" else [stem])]
        if ".".join(dotted) in imported:
            return start
    return top
