"""The place where applies to one tree work, open to one of them at a time."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cleveragents.infrastructure.apply import refusals
from cleveragents.infrastructure.apply.files import Rights
from cleveragents.infrastructure.apply.pending import APPLIES
from cleveragents.infrastructure.apply.tree_lock import tree_lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cleveragents.infrastructure.apply.files import Files


@dataclass(frozen=True, slots=True)
class Site:
    """The open folders that every apply to a tree works in."""

    files: Files
    root: int
    #: Our own folder in the root, and what it is called there.
    home: int
    home_name: str
    #: Holds one folder for each apply, and what it held when we came.
    applies: int
    waiting: tuple[str, ...]


@contextmanager
def open_site(files: Files, home: Path, wait_s: float) -> Iterator[Site]:
    """Open the folders under the tree's lock, and leave no empty one behind.

    Our own folder is made if need be and kept out of git; a symbolic link in its place is refused.
    """
    with ExitStack() as stack:
        try:
            root = os.open(home.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, root)
            own = _open_home(files, root, home.name)
            stack.callback(os.close, own)
            stack.enter_context(tree_lock(own, wait_s))
            files.make_folder((own, APPLIES))
            applies = files.open_folder((own, APPLIES))
            stack.callback(os.close, applies)
            waiting = tuple(sorted(files.names(applies)))
        except OSError as error:
            raise refusals.not_replaced(error, home.name) from error
        try:
            yield Site(files, root, own, home.name, applies, waiting)
        finally:
            with suppress(OSError):  # another apply waits in it to be recovered
                files.remove_folder((own, APPLIES))


def _open_home(files: Files, root: int, name: str) -> int:
    made = files.make_folder((root, name))
    try:
        home = files.open_folder((root, name))
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            raise refusals.leads_away(name) from error
        raise
    if made:
        files.write((home, ".gitignore"), b"*\n", Rights(0o666))
    return home
