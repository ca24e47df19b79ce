"""Whether an apply runs or waits to be recovered: every command asks, so this imports little."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

#: In our own folder in a tree; there while an apply runs or waits to be recovered.
APPLIES: Final = "apply"


def is_pending(home: Path) -> bool:
    """Look once, at one name; what is no folder is not of ours."""
    try:
        return stat.S_ISDIR((home / APPLIES).lstat().st_mode)
    except OSError:
        return False
