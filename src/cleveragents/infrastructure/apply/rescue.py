"""Old files that somebody still writes to while they are replaced: they are kept, not removed.

A program that has a file open goes on to write into it wherever it is moved.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cleveragents.infrastructure.apply.files import Rights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.infrastructure.apply.files import Files, Place
    from cleveragents.infrastructure.apply.site import Site

#: In our own folder; holds one folder for each apply, and in it files by their paths.
RESCUED: Final = "rescued"


def rescue(site: Site, apply_id: str, old: Sequence[tuple[str, Place]]) -> tuple[str, ...]:
    """Move old files to where the user finds them, durably; return their paths."""
    for path, place in old:
        *folders, name = f"{RESCUED}/{apply_id}/{path}".split("/")
        handle = os.dup(site.home)
        try:
            for folder in folders:
                site.files.make_folder((handle, folder))
                below = site.files.open_folder((handle, folder))
                site.files.flush(handle)
                os.close(handle)
                handle = below
            _move(site.files, place, (handle, name))
            site.files.flush(handle)
        finally:
            os.close(handle)
    return tuple(path for path, _ in old)


def _move(files: Files, source: Place, target: Place) -> None:
    try:
        files.move(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # It lies on another device; a copy of it may be there already, of a rescue that died.
        with suppress(FileNotFoundError):
            files.remove(target)
        mode, data = stat.S_IMODE(os.stat(source[1], dir_fd=source[0]).st_mode), files.read(source)
        files.write(target, data or b"", Rights(mode), durable=True)
