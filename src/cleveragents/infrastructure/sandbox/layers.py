"""What sandboxes stand on: a snapshot of a commit, shared by all, and what changed since.

A snapshot is made once and never written again; a layer holds the changed files only, and
stands on another where that saves work: each is at least twice as large as the one above it, so
that a step costs what it changed, and the layers of a plan are few (the logarithm of its changes).
Empty folders, which git cannot hold, are noted beside the snapshot when the plan starts.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.domain.paths import folders_of
from cleveragents.infrastructure.sandbox.erasure import erase
from cleveragents.infrastructure.sandbox.sandbox import PlanTree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from cleveragents.infrastructure.git.repository import Blob, GitRepository, TreeChange
    from cleveragents.infrastructure.sandbox.workshop import Workshop

#: What is still being made; found by one who is alone in the workshop, it is a dead one's.
_PART: Final = ".part"
#: Beside a layer: itself and those that it stands on, each with the number of its changes.
_STACK: Final = ".stack"
_LINK: Final = 0o120000
_EXECUTABLE: Final = 0o100755


@dataclass(frozen=True, slots=True)
class Delta:
    """How one tree becomes another: first these paths go, then these files are written."""

    removed: tuple[str, ...]
    written: tuple[tuple[str, Blob], ...]


@dataclass(frozen=True, slots=True)
class Used:
    """The trees that sandboxes stand on, and those that the next ones will probably start from."""

    kept: tuple[PlanTree, ...] = ()
    newest: tuple[PlanTree, ...] = ()


@dataclass(frozen=True, slots=True)
class _Layer:
    head: str
    changes: int


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
        self._made(self._layer(tree), lambda part: self._fill_layer(tree, part))
        return *(self._layer(one) for one in self._stack(tree)), snapshot

    def delta(self, tree: PlanTree) -> Delta:
        """Return how a plan's base becomes its head."""
        if tree.head == tree.base:
            return Delta((), ())
        return self._delta(self._repository.changes(tree.base, tree.head), tree.head)

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
        for path in self._empty_folders(base):
            if make_folders(folder, path.rpartition("/")[0], make=False):
                with suppress(FileExistsError):
                    (folder / path).mkdir()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep all layers as they are, until what stands on one of them is known to all."""
        with self._locked(fcntl.LOCK_SH):
            yield

    def sweep(self, used: Callable[[], Used], since: float) -> None:
        """Delete what was left half-made, and what is not used; only alone in the workshop.

        Snapshots and the newest layers of plans go only if they were made before `since`.
        """
        # While somebody is about to use a layer, nobody can tell which are used.
        with suppress(BlockingIOError), self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
            self._give_up(used(), since)
        for parent in (self._snapshots, self._layers):
            for part in parent.glob(f"*{_PART}"):
                erase(part) if part.is_dir() else part.unlink()

    # -- what is there ---------------------------------------------------------------------

    def _layer(self, tree: PlanTree) -> Path:
        return self._layers / f"{tree.base}-{tree.head}"

    def _stack(self, tree: PlanTree) -> tuple[PlanTree, ...]:
        return tuple(PlanTree(tree.base, one.head) for one in self._read_stack(tree))

    def _read_stack(self, tree: PlanTree) -> tuple[_Layer, ...]:
        """Return a tree's layer and those that it stands on, the topmost first."""
        try:
            said = _beside(self._layer(tree), _STACK).read_text(encoding="ascii")
        except FileNotFoundError:
            return (_Layer(tree.head, 0),)
        lines = (line.split() for line in said.splitlines())
        return tuple(_Layer(head, int(changes)) for head, changes in lines)

    def _delta(self, changes: tuple[TreeChange, ...], head: str) -> Delta:
        is_needed = any(change.new is None for change in changes)
        return delta_of(changes, self._folders(head) if is_needed else set())

    def _folders(self, commit: str) -> set[str]:
        listing = ("ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", commit)
        return {os.fsdecode(name) for name in self._repository.git(*listing).split(b"\0")}

    def _empty_folders(self, base: str) -> list[str]:
        said = self._note(base).read_bytes()
        return [os.fsdecode(name) for name in said.split(b"\0")] if said else []

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        file = os.open(self.home / "layers.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, how)
            yield
        finally:
            os.close(file)

    # -- alone in the workshop -------------------------------------------------------------

    def _give_up(self, used: Used, since: float) -> None:
        """Name what is not used as what is half-made is named."""
        young = [tree for tree in used.newest if _is_made_after(since, self._layer(tree))]
        trees = [one for tree in (*used.kept, *young) for one in (tree, *self._stack(tree))]
        names = {name for tree in trees for name in (tree.base, self._layer(tree).name)}
        for parent in (self._snapshots, self._layers):
            for one in parent.iterdir() if parent.is_dir() else ():
                spared = parent == self._snapshots and _is_made_after(since, one)
                if one.is_dir() and one.suffix != _PART and one.name not in names and not spared:
                    erase(_beside(one, _PART))
                    one.rename(_beside(one, _PART))
        for stack in self._layers.glob(f"*{_STACK}"):
            if not stack.with_suffix("").is_dir():
                stack.unlink()

    def _made(self, final: Path, fill: Callable[[Path], object]) -> Path:
        if not final.is_dir():
            self._workshop.do(lambda: _make(final, fill))
        return final

    def _fill_snapshot(self, base: str, part: Path) -> None:
        self._repository.checkout(base, part)
        self.make_empty_folders(part, base)

    def _fill_layer(self, tree: PlanTree, part: Path) -> None:
        below, changes = self._ground_of(tree)
        self.write(part, self._delta(changes, tree.head), _white_out)
        stack = (_Layer(tree.head, len(changes)), *below)
        text = "".join(f"{one.head} {one.changes}\n" for one in stack)
        _beside(self._layer(tree), _STACK).write_text(text, encoding="ascii")

    def _ground_of(self, tree: PlanTree) -> tuple[tuple[_Layer, ...], tuple[TreeChange, ...]]:
        """Return what a new layer is best put on, and what changed from there on."""
        history = self._repository.git(
            "rev-list", "--first-parent", tree.head, f"^{tree.base}"
        ).decode()
        before = (PlanTree(tree.base, commit) for commit in history.split())
        last = next((one for one in before if self._layer(one).is_dir()), None)
        stack = () if last is None else self._read_stack(last)
        # What was changed above a layer has to be written again: probably at least so much.
        again = 1
        while stack:
            top = stack[0]
            if 2 * again <= top.changes:
                changes = self._repository.changes(top.head, tree.head)
                enough = 2 * len(changes) <= top.changes
                if enough and not self._bares(tree, top.head, changes):
                    return stack, changes
            again += top.changes
            stack = stack[1:]
        return (), self._repository.changes(tree.base, tree.head)

    def _bares(self, tree: PlanTree, before: str, changes: Iterable[TreeChange]) -> bool:
        """Tell whether a folder that git cannot hold may come to light, or go, by a step.

        Whether it is shown depends on base and head alone, which a step does not know of.
        """
        empty = self._empty_folders(tree.base)
        if not empty:
            return False
        stirred = {change.path for change in changes}
        stirred |= self._folders(before) ^ self._folders(tree.head)
        return any(one in stirred for path in empty for one in (*folders_of(path), path))

    def _write_note(self, note: Path) -> None:
        if note.exists():
            return
        tops = self._repository.empty_folders()
        names = [name for top in tops for name in _without_files(self._repository.root, top)]
        note.parent.mkdir(parents=True, exist_ok=True)
        part = _beside(note, _PART)
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


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _is_made_after(since: float, folder: Path) -> bool:
    try:
        return folder.stat().st_mtime >= since
    except FileNotFoundError:
        return False


def _make(final: Path, fill: Callable[[Path], object]) -> None:
    if final.is_dir():
        return
    part = _beside(final, _PART)
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
