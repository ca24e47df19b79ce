"""Where an apply keeps files outside of the tree's sight: the new before, the old after."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import PlanError
from cleveragents.domain.paths import check_path
from cleveragents.infrastructure.apply import refusals
from cleveragents.infrastructure.apply.files import Rights
from cleveragents.infrastructure.apply.folders import Folders, folders_of_all
from cleveragents.infrastructure.apply.journal import Operation
from cleveragents.infrastructure.apply.target import Signature

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from cleveragents.infrastructure.apply.files import Place
    from cleveragents.infrastructure.apply.site import Site
    from cleveragents.infrastructure.apply.target import Target

# A folder of this prefix holds nothing that is still needed; no apply id begins with it.
_TRASH: Final = "~"
_ELSEWHERE: Final = "elsewhere"
_SEAL: Final = "seal"
_HIDDEN: Final = ".cleveragents-"
_ON_THE_WAY: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK})
# Removing files waits for the disk rather than for us, so two at a time are worth a thread.
_MANY: Final = 256


class Staging:
    """The folders of one apply; of one thread.

    Slot `N` holds a new file until it is in place, and then the one it was exchanged with.
    `N.old` holds a file that was removed, or replaced where files cannot be exchanged.
    Nothing can be renamed to another device, so each one in the tree has a hidden folder of
    ours at its mount point; `elsewhere` lists them before they are made.
    """

    def __init__(self, site: Site, name: str) -> None:
        self._site = site
        self._name = name
        self._files = site.files
        self.apply_id = name.removeprefix(_TRASH)
        #: The file that is being staged, for whoever explains a failure.
        self.at = ""
        self.handles = [self._files.open_folder((site.applies, name))]
        self._device = os.fstat(self.handles[0]).st_dev
        self._folders = Folders(self._files, os.dup(site.root))
        self._stages: dict[str, int] = {}
        self._last: tuple[str, int] | None = None

    @classmethod
    def make(cls, site: Site, apply_id: str) -> Self:
        """Make the folder of a new apply."""
        try:
            site.files.make_folder((site.applies, apply_id))
            return cls(site, apply_id)
        except OSError as error:
            with suppress(OSError):
                site.files.remove_folder((site.applies, apply_id))
            raise refusals.not_replaced(error, site.home_name) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folders.__exit__()
        for handle in self.handles:
            os.close(handle)

    def stage(self, targets: Iterable[Target]) -> tuple[Operation, ...]:
        """Write every new file, and return what is to be done, sorted by path."""
        self._files.write((self.handles[0], _SEAL), b"", Rights(0o600))
        operations: dict[str, Operation] = {}
        for target in targets:
            self.at = target.path
            if target.path.partition("/")[0].casefold() == self._site.home_name.casefold():
                raise refusals.ours(target.path)
            if target.path in operations:
                raise refusals.contradiction(target.path, "is given twice")
            operations[target.path] = self._add(target, str(len(operations)))
        _refuse_contradictions(operations)
        return tuple(operations[path] for path in sorted(operations))

    def seal(self) -> tuple[int, int]:
        """Return which file the seal is, and when the file system last touched it.

        No program can choose these: in a copy of the folder, or in one that came with a tree
        from a stranger, they are others.
        """
        status = self._files.status((self.handles[0], _SEAL))
        return (0, 0) if status is None else (status.st_ino, status.st_ctime_ns)

    def flush(self) -> None:
        """Make all that was staged durable."""
        site = self._site
        if not self._files.flush_whole(self.handles):
            for folder in (*self.handles, site.applies, site.home, site.root):
                self._files.flush(folder)

    def open_elsewhere(self) -> None:
        """Open the folders on other devices again."""
        for mount in self._listed():
            self._open_stage(mount)

    def slot(self, operation: Operation) -> Place:
        """Where the new file is staged."""
        return self.handles[operation.stage], operation.slot

    def kept(self, operation: Operation) -> Place:
        """Where the old file is kept if it was not exchanged."""
        return self.handles[operation.stage], f"{operation.slot}.old"

    def discard(self) -> None:
        """Say durably that nothing here is needed any more, then remove it all."""
        if not is_trash(self._name):
            trash = _TRASH + self._name
            self._files.move((self._site.applies, self._name), (self._site.applies, trash))
            self._name = trash
            self._files.flush(self._site.applies)
        self._files.reach("after-done")
        for mount in self._listed():
            self._remove_stage(mount)
        here = self.handles[0]
        self._remove_all(here, [one for one in self._files.names(here) if one != _ELSEWHERE])
        self._remove_all(here, self._files.names(here))
        self._files.reach("after-clean")
        self._files.remove_folder((self._site.applies, self._name))

    def _add(self, target: Target, slot: str) -> Operation:
        stage = self._stage_for(target.path.rpartition("/")[0])
        after = None
        if target.after is not None:
            place = (self.handles[stage], slot)
            rights = Rights(target.permissions, target.owner)
            write = self._files.link_to if target.is_symlink else self._files.write
            after = Signature.of(write(place, target.after, rights))
            if target.owner is not None and not target.is_symlink:
                self._keep_attributes(target.path, place)
        return Operation(target.path, stage, slot, target.expected, after)

    def _keep_attributes(self, path: str, place: Place) -> None:
        folder, _, name = path.rpartition("/")
        try:
            old = (self._folders.open(folder), name)
        except OSError as error:
            if error.errno not in _ON_THE_WAY:
                raise
            return  # it is gone, which the survey will tell
        self._files.keep_attributes(old, place)

    def _stage_for(self, folder: str) -> int:
        """Choose the staging folder on the device where a folder is, or will be."""
        if self._last is not None and self._last[0] == folder:
            return self._last[1]
        try:
            self._folders.open(folder)
        except OSError as error:
            if error.errno not in _ON_THE_WAY:
                raise
        stage = 0
        if self._folders.device() != self._device:
            mount = self._folders.mount()
            stage = self._stages.get(mount) or self._make_stage(mount)
        self._last = (folder, stage)
        return stage

    def _make_stage(self, mount: str) -> int:
        place = (self._folders.open(mount), self._hidden)
        if self._files.status(place) is not None:  # not ours, for ours are listed
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self._hidden)
        self._files.append((self.handles[0], _ELSEWHERE), os.fsencode(mount) + b"\0")
        self._files.make_folder(place)
        return self._open_stage(mount)

    def _open_stage(self, mount: str) -> int:
        self._stages[mount] = len(self.handles)
        parent = self._folders.open(mount)
        self.handles.append(self._files.open_folder((parent, self._hidden)))
        return self._stages[mount]

    def _remove_stage(self, mount: str) -> None:
        with suppress(FileNotFoundError):
            place = (self._folders.open(mount), self._hidden)
            handle = self._files.open_folder(place)
            try:
                self._remove_all(handle, self._files.names(handle))
            finally:
                os.close(handle)
            self._files.remove_folder(place)

    @property
    def _hidden(self) -> str:
        return _HIDDEN + self.apply_id

    def _listed(self) -> list[str]:
        data = self._files.read((self.handles[0], _ELSEWHERE)) or b""
        # What stands behind the last separator was not written to its end, nor made.
        mounts = [os.fsdecode(mount) for mount in data.split(b"\0")[:-1]]
        try:
            for mount in filter(None, mounts):
                check_path(mount)
        except PlanError as error:
            raise ValueError(error.message) from error
        return mounts

    def _remove_all(self, folder: int, names: list[str]) -> None:
        def remove(some: list[str]) -> None:
            for name in some:
                self._files.reach("mid-clean")
                self._files.remove((folder, name))

        if len(names) < _MANY:
            remove(names)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1, thread_name_prefix="ca-apply-clean") as pool:
            half = pool.submit(remove, names[::2])
            remove(names[1::2])
            half.result()


def is_trash(name: str) -> bool:
    """Say whether all in this folder is over and may be removed."""
    return name.startswith(_TRASH)


def _refuse_contradictions(operations: dict[str, Operation]) -> None:
    """Refuse a path that shall be a file and, for another, a folder."""
    present = {path for path, one in operations.items() if one.after is not None}
    for path in present & folders_of_all(present):
        raise refusals.contradiction(path, "shall be a file and a folder")
