"""The lists that say what is ignored, where git can read them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cleveragents.domain.paths import folders_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def copy_ignore_lists(source: Path, target: Path, paths: Iterable[str]) -> None:
    """Copy the lists that say which of these paths are ignored: one in each folder above them."""
    for folder in {"", *(above for path in paths for above in folders_of(path))}:
        try:
            # Git does not follow a link that is called so, and we must not.
            handle = os.open(source / folder / ".gitignore", os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            continue
        with os.fdopen(handle, "rb") as file:
            (target / folder).mkdir(parents=True, exist_ok=True)
            (target / folder / ".gitignore").write_bytes(file.read())
