"""Folders that are deleted by who made them, unless that process was killed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Nothing that makes such a folder works in it for so long.
AGE_S_MIN: Final = 86_400.0
#: The home of a command that runs unconfined, in the folder of the system for temporary files.
COMMAND_HOME: Final = "cleveragents-home-"
# In our own folder, and in the repository that is there.
_IN_HOME: Final = ("commit-*", "git-*", "git/index-*", "git/merge-*")


def sweep(home: Path, now_s: float) -> None:
    """Delete what was left a day ago or earlier, if it is this user's."""
    temporary = Path(tempfile.gettempdir()).glob(f"{COMMAND_HOME}*")
    for folder in (*(one for name in _IN_HOME for one in home.glob(name)), *temporary):
        # Whoever else sweeps may be quicker.
        with suppress(OSError):
            found = folder.lstat()
            ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            if ours and found.st_mtime < now_s - AGE_S_MIN:
                shutil.rmtree(folder, ignore_errors=True)
