"""What sandboxes stand on: a snapshot of a commit, shared by all, and what changed since.

A snapshot is made once and never written again; a layer holds the changed files only.
Empty folders, which git cannot hold, are noted beside the snapshot when the plan starts.
"""

from __future__ import annotations

import ctypes
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.domain.paths import folders_of
from cleveragents.infrastructure.sandbox.erasure import erase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from cleveragents.infrastructure.git.repository import Blob, GitRepository, TreeChange
    from cleveragents.infrastructure.sandbox.sandbox import PlanTree
    from cleveragents.infrastructure.sandbox.workshop import Workshop

#: What is still being made; found by one who is alone in the workshop, it is a dead one's.
_PART: Final = ".part"
_LINK: Final = 0o120000
_EXECUTABLE: Final = 0o100755


@dataclass(frozen=True, slots=True)
class Delta:
    """How one tree becomes another: first these paths go, then these files are written."""

    removed: tuple[str, ...]
    written: tuple[tuple[str, Blob], ...]


def delta_of(changes: Iterable[TreeChange], folders: set[str]) -> Delta:
    """Return the difference of two trees, the second of which has these folders.

    A folder goes with its last file.
    """
    removed, written = set(), []
    for change in changes:
        if change.new is not None:
            written.append((change.path, change.new))
        else:
            lost = (one for one in folders_of(change.path) if one not in folders)
            removed.add(next(lost, change.path))
    return Delta(tuple(sorted(removed)), tuple(written))


class Layers:
    """The snapshots and layers of one repository, made when they are first needed.

    Safe from any thread and process: each appears whole, under its final name, or not at all.
    """

    def __init__(self, repository: GitRepository, workshop: Workshop) -> None:
        self._repository = repository
        self._workshop = workshop
        #: Without links on the way: a path into a namespace must not lead out of it again.
        self.home = repository.home.resolve()
        self._snapshots = self.home / "snapshots"
        self._layers = self.home / "layers"

    def prepare(self, base: str) -> None:
        """Note the empty folders of the user's tree as it stands, for this commit of it."""
        note = self._note(base)
        if not note.exists():
            self._workshop.do(lambda: self._write_note(note))

    def snapshot(self, base: str) -> Path:
        """Return the folder of a commit's files, which nobody may write to."""
        self.prepare(base)
        final = self._snapshots / base
        return self._made(final, lambda part: self._fill_snapshot(base, part))

    def lowers(self, tree: PlanTree) -> tuple[Path, ...]:
        """Return the folders that show a plan's tree together, the topmost first."""
        snapshot = self.snapshot(tree.base)
        if tree.head == tree.base:
            return (snapshot,)
        final = self._layers / f"{tree.base}-{tree.head}"
        layer = self._made(final, lambda part: self.write(part, self.delta(tree), _white_out))
        return layer, snapshot

    def delta(self, tree: PlanTree) -> Delta:
        """Return how a plan's base becomes its head."""
        git = self._repository
        if tree.head == tree.base:
            return Delta((), ())
        listed = git.git("ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", tree.head)
        folders = {os.fsdecode(name) for name in listed.split(b"\0")}
        return delta_of(git.changes(tree.base, tree.head), folders)

    def write(self, folder: Path, delta: Delta, remove: Callable[[Path], object]) -> None:
        """Change a folder by a delta; `remove` says what is left in the place of what goes."""
        for path in delta.removed:
            make_folders(folder, path.rpartition("/")[0], replace=True)
            remove(folder / path)
        if not delta.written:
            return
        contents = self._repository.read([blob.oid for _, blob in delta.written])
        for (path, blob), data in zip(delta.written, contents, strict=True):
            make_folders(folder, path.rpartition("/")[0], replace=True)
            _write_file(folder / path, blob, data)

    def make_empty_folders(self, folder: Path, base: str) -> None:
        """Make the folders that git could not hold, where what they lay in is still there."""
        for name in self._note(base).read_bytes().split(b"\0"):
            path = os.fsdecode(name)
            if make_folders(folder, path.rpartition("/")[0], make=False):
                with suppress(FileExistsError):
                    (folder / path).mkdir()

    def sweep(self) -> None:
        """Delete what was left half-made; only for one who is alone in the workshop."""
        for parent in (self._snapshots, self._layers):
            for part in parent.glob(f"*{_PART}"):
                erase(part) if part.is_dir() else part.unlink()

    # -- alone in the workshop -------------------------------------------------------------

    def _made(self, final: Path, fill: Callable[[Path], object]) -> Path:
        if not final.is_dir():
            self._workshop.do(lambda: _make(final, fill))
        return final

    def _fill_snapshot(self, base: str, part: Path) -> None:
        self._repository.checkout(base, part)
        self.make_empty_folders(part, base)

    def _write_note(self, note: Path) -> None:
        if note.exists():
            return
        tops = self._repository.empty_folders()
        names = [name for top in tops for name in _without_files(self._repository.root, top)]
        note.parent.mkdir(parents=True, exist_ok=True)
        part = note.with_name(note.name + _PART)
        part.write_bytes(b"\0".join(sorted(map(os.fsencode, names))))
        _sync(note.parent)
        part.replace(note)

    def _note(self, base: str) -> Path:
        return self._snapshots / f"{base}.folders"


def make_folders(top: Path, path: str, *, replace: bool = False, make: bool = True) -> bool:
    """Make a folder and those it lies in, never through a link; false when something is in the way.

    With `replace`, what is in the way goes; without `make`, a missing folder is in the way.
    """
    folder = top
    for part in path.split("/") if path else ():
        folder /= part
        try:
            if stat.S_ISDIR(folder.lstat().st_mode):
                continue
            if not replace:
                return False
            folder.unlink()
        except FileNotFoundError:
            if not make:
                return False
        folder.mkdir()
    return True


def remove_entry(path: Path) -> None:
    """Delete a file, a link or a whole folder; absent is fine."""
    try:
        path.unlink()
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # what Linux says of a folder, and what others say
        erase(path)


def _make(final: Path, fill: Callable[[Path], object]) -> None:
    if final.is_dir():
        return
    part = final.with_name(final.name + _PART)
    erase(part)
    part.mkdir(parents=True)
    fill(part)
    # Or a power cut could leave a name that stands for torn files, for ever.
    _sync(part)
    part.rename(final)


def _write_file(path: Path, blob: Blob, data: bytes) -> None:
    remove_entry(path)
    if blob.mode == _LINK:
        path.symlink_to(os.fsdecode(data))
        return
    path.write_bytes(data)
    if blob.mode == _EXECUTABLE:
        # As git does: whoever may read it may run it.
        readers = path.stat().st_mode & 0o444
        path.chmod(path.stat().st_mode | readers >> 2)


def _white_out(path: Path) -> None:
    """Leave what hides a file or folder of the layers below."""
    os.mknod(path, stat.S_IFCHR)


def _without_files(root: Path, top: str) -> Iterator[str]:
    """Return a folder and those in it, unless there is a file: then all its files are ignored."""
    found = []
    for folder, _, files in os.walk(root / top):
        if files:
            return
        found.append(os.path.relpath(folder, root))
    yield from found


def _sync(folder: Path) -> None:
    """Bring all that was written to the disk."""
    syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
    if syncfs is None:
        os.sync()
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        syncfs(handle)
    finally:
        os.close(handle)
