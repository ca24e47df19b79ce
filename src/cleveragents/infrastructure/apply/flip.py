"""Puts staged files into the tree, and takes them out again; every step can be repeated.

No step trusts its memory of what was done before: each looks at its slot first. So the same
code serves the first try, the recovery after a crash, and a crash of the recovery.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cleveragents.infrastructure.apply import refusals
from cleveragents.infrastructure.apply.folders import Folders
from cleveragents.infrastructure.apply.target import Signature

if TYPE_CHECKING:
    from typing import Self

    from cleveragents.infrastructure.apply.files import Place
    from cleveragents.infrastructure.apply.journal import Journal, Operation
    from cleveragents.infrastructure.apply.site import Site
    from cleveragents.infrastructure.apply.staging import Staging

# What a step answers that was done before, or whose folder is not there (any more).
_DONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EEXIST})
# And what a folder answers that holds other files, or is a mount point: it stays.
_STAYS: Final = _DONE | {errno.ENOTEMPTY, errno.EBUSY}


class Flip:
    """One journal and the tree it is about; of one thread, under the tree's lock."""

    def __init__(self, site: Site, staging: Staging, journal: Journal) -> None:
        self._files = site.files
        self._staging = staging
        self._journal = journal
        self._folders = Folders(site.files, os.dup(site.root))
        self._gone = [one for one in journal.operations if one.after is None]
        self._put = [one for one in journal.operations if one.after is not None]
        #: The path that is being worked on, for whoever explains a failure.
        self.at = ""
        #: Files that somebody changed after we put them in place; going back leaves them alone.
        self.edited: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folders.__exit__()

    def forward(self) -> None:
        """Make the tree new, durably; CA4102 when a file was not what the caller saw."""
        for one in self._gone:
            self.at = one.path
            self._take_out(one)
            self._files.reach("mid-flip")
        for folder in reversed(self._journal.removed):
            self._remove_folder(folder.path)
            self._files.reach("mid-flip")
        for path in self._journal.made:
            self.at = path
            self._files.make_folder(self._place(path))
            self._files.reach("mid-flip")
        for one in self._put:
            self.at = one.path
            self._put_in(one)
            self._files.reach("mid-flip")
        self._files.reach("after-flip")
        self._verify()
        self._flush()

    def written_since(self) -> list[tuple[str, Place]]:
        """Return the old files that somebody still wrote to after they were looked at."""
        found = []
        for one in self._journal.operations:
            old = None if one.expected is None else self._old(one)
            if old is not None and one.expected and not one.expected.has_content_of(old[1]):
                found.append((one.path, old[0]))
        return found

    def back(self) -> None:
        """Make the tree old again, durably."""
        for one in reversed(self._put):
            self.at = one.path
            self._take_back(one)
            self._files.reach("mid-rollback")
        for path in reversed(self._journal.made):
            self._remove_folder(path)
            self._files.reach("mid-rollback")
        for folder in self._journal.removed:
            self.at = folder.path
            self._files.make_folder(self._place(folder.path))
            handle = self._folders.open(folder.path)
            self._files.restore_rights(handle, folder.mode, (folder.uid, folder.gid))
            self._files.reach("mid-rollback")
        for one in reversed(self._gone):
            self.at = one.path
            self._put_back(one)
            self._files.reach("mid-rollback")
        self._flush()
        self._files.reach("after-rollback")

    # Forward

    def _take_out(self, one: Operation) -> None:
        try:
            self._files.move_new(self._place(one.path), self._staging.kept(one))
        except OSError as error:
            # It was taken out before; or there was nothing, and nothing kept is noticed later.
            if error.errno not in _DONE:
                raise

    def _put_in(self, one: Operation) -> None:
        if not self._is_staged(one):
            return
        slot, place = self._staging.slot(one), self._place(one.path)
        try:
            if one.expected is None:
                self._files.move_new(slot, place)
            elif not self._files.exchange(slot, place):
                self._replace(slot, place, self._staging.kept(one))
        except (FileExistsError, FileNotFoundError, IsADirectoryError) as error:
            raise refusals.changed_since([one.path]) from error

    def _replace(self, slot: Place, place: Place, kept: Place) -> None:
        """Do in three steps what an exchange does in one; they can be begun again at each."""
        if self._files.status(kept) is None:
            self._files.hold(place, kept)
        if self._files.status(place) is not None and not self._files.same(kept, place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        self._files.move(slot, place)

    def _remove_folder(self, path: str) -> None:
        self.at = path
        try:
            self._files.remove_folder(self._place(path))
        except OSError as error:
            if error.errno not in _STAYS:
                raise

    def _verify(self) -> None:
        """Look at what we took out: an editor may have saved in the last moment."""
        changed = []
        for one in self._journal.operations:
            if one.expected is not None:
                old = self._old(one)
                if old is None or Signature.of(old[1]) != one.expected:
                    changed.append(one.path)
        if changed:
            raise refusals.changed_since(changed)

    # Back

    def _take_back(self, one: Operation) -> None:
        """Undo `_put_in`, unless somebody has changed the file since."""
        old = self._old(one)
        if one.expected is None:
            self._take_away(one)
        elif old is not None:  # else it was never touched
            place = self._place(one.path)
            there = self._files.status(place)
            if there is None:
                self._files.move_new(old[0], place)
            elif self._is_ours(one, there):
                try:
                    self._files.move(old[0], place)
                except NotADirectoryError:  # somebody had put a folder in the file's place
                    self._files.remove(place)
                    self._files.move_new(old[0], place)
            elif not os.path.samestat(old[1], there):  # else it got a second name only
                self.edited.append(one.path)

    def _take_away(self, one: Operation) -> None:
        try:
            place = self._place(one.path)
        except OSError as error:
            if error.errno not in _DONE:
                raise
            return  # its folder was not made, or is gone again
        there = self._files.status(place)
        if there is None or stat.S_ISDIR(there.st_mode):
            return
        if self._is_ours(one, there):
            self._files.remove(place)
        elif not self._is_staged(one):
            self.edited.append(one.path)

    def _put_back(self, one: Operation) -> None:
        kept = self._staging.kept(one)
        if self._files.status(kept) is not None:
            try:
                self._files.move_new(kept, self._place(one.path))
            except FileExistsError:
                self.edited.append(one.path)

    # Both

    def _place(self, path: str) -> Place:
        folder, _, name = path.rpartition("/")
        return self._folders.open(folder), name

    @staticmethod
    def _is_ours(one: Operation, there: os.stat_result) -> bool:
        """Say whether the new file is in place, and as we wrote it."""
        return one.after is not None and one.after.has_content_of(there)

    def _is_staged(self, one: Operation) -> bool:
        """Say whether the slot still holds the new file."""
        status = self._files.status(self._staging.slot(one))
        return status is not None and one.after is not None and status.st_ino == one.after.inode

    def _old(self, one: Operation) -> tuple[Place, os.stat_result] | None:
        """Find the old file outside of the tree: exchanged, kept, or not taken out yet."""
        slot, kept = self._staging.slot(one), self._staging.kept(one)
        if one.after is not None:
            status = self._files.status(slot)
            if status is not None and status.st_ino != one.after.inode:
                return slot, status
        status = self._files.status(kept)
        return None if status is None else (kept, status)

    def _flush(self) -> None:
        if self._files.flush_whole(self._staging.handles):
            return
        folders = {one.path.rpartition("/")[0] for one in self._journal.operations}
        folders |= {path.rpartition("/")[0] for path in self._journal.made}
        folders |= {one.path.rpartition("/")[0] for one in self._journal.removed}
        for path in sorted(folders):
            with suppress(FileNotFoundError, NotADirectoryError):
                self._files.flush(self._folders.open(path))
        for handle in self._staging.handles:
            self._files.flush(handle)
