"""Our own git repository beside the user's tree: it holds every version that a plan has seen.

The user's repository, its index and its HEAD are never written, and its configuration never read:
contents are kept byte for byte, without filters and without conversion of line ends.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleveragents.infrastructure.git.complaints import left_out
from cleveragents.infrastructure.git.ignore_lists import copy_ignore_lists
from cleveragents.infrastructure.git.packing import packing_for
from cleveragents.infrastructure.git.program import (
    UNARMED,
    clean_environment,
    configured,
    git_program,
    refused,
    run_git,
)
from cleveragents.infrastructure.git.user_repository import UserRepository
from cleveragents.infrastructure.git.versions import Blob, TreeChange, Write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Blob", "GitRepository", "TreeChange", "Write"]

# Beyond this many bytes of names all files are listed: a command line has an end.
_NAMES_BYTES_MAX: Final = 100_000
# Objects are handed to the disk one by one, and flushed all at once, by the commit of the store
# that names them: it lies on the same disk. Git's `batch` does the same with a file of its own,
# but then looks for packs where only single objects wait for their flush.
_CONFIGURATION: Final = b"""\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tautocrlf = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tpackedRefsTimeout = 60000
\tlooseCompression = 1
\tfsync = committed,loose-object
\tfsyncMethod = writeout-only
[gc]
\tauto = 0
\tpruneExpire = never
[diff]
\trenameLimit = 10000
[checkout]
\tworkers = 0
[advice]
\taddEmbeddedRepo = false
"""
# Above all others, so that no `.gitattributes` of the user's can change a byte.
_ATTRIBUTES: Final = b"* -text -eol -filter -ident -working-tree-encoding\n"
# Thousands of new files go into one pack: a sixth of the time, a tenth of the room.
_INTO_A_PACK: Final = configured({**UNARMED, "core.bigFileThreshold": "1"})
_IGNORED: Final = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
_GITLINK: Final = b"160000"
_NOWHERE: Final = b"0" * 40


class GitRepository:
    """Snapshots, commits and trees of one user's tree, in the folder `git` of its state folder.

    Every method may be called from any thread and any process at once: objects are only added,
    each under its own hash, and every call that needs an index has one of its own.
    """

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root.absolute()
        self.home = home.absolute()
        self.folder = self.home / "git"
        # Both, because a file in the first could name another for the second.
        here = dict.fromkeys(("GIT_DIR", "GIT_COMMON_DIR"), os.fspath(self.folder))
        self._environment = {**clean_environment(), **here}
        # Our own folder is no part of the tree, whatever the user's lists say.
        inside = self.home.is_relative_to(self.root)
        self._own = os.fspath(self.home.relative_to(self.root)) if inside else ".cleveragents"
        if not (self.folder / "config").is_file():
            self._make()
        # They decide what git runs and what it changes, and may have come with a stranger's tree.
        self._settle("config", _CONFIGURATION)
        self._settle("info/attributes", _ATTRIBUTES)

    def git(
        self,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (0,),
    ) -> bytes:
        """Run git on this repository and return what it printed."""
        environment = {**self._environment, **(env or {})}
        return run_git(arguments, environment, stdin=stdin, folder=self.folder, fine=fine).stdout

    # -- the user's tree -------------------------------------------------------------------

    def snapshot(self, *parents: str) -> str:
        """Return a commit of the user's tree as it stands: all files that are not ignored.

        Uncommitted and untracked files are part of it, submodules and nested repositories are not.
        A file of a parent that is still there is part of it too, also if it is ignored by now.
        """
        user = UserRepository(self.root)
        self._settle("info/exclude", user.ignore_lists())
        kept = set(user.kept_although_ignored())
        known = self.folder / "snapshot.index"
        with self._index() as (index, environment):
            here = {**environment, "GIT_WORK_TREE": os.fspath(self.root)}
            try:
                # With its time: by that git knows which files may have changed unnoticed.
                shutil.copy2(known, index)
            except FileNotFoundError:
                here |= _INTO_A_PACK
            kept.update(filter(user.is_file, self._ignored_of(parents, here)))
            if kept:
                self._run(("update-index", "--add", "-z", "--stdin"), here, stdin=_ended(kept))
            self._add(self.root, here)
            self._forget_ignored(here, kept)
            tree = self.git("write-tree", env=here).decode().strip()
            # What was hashed need not be hashed again; whoever comes last is right.
            os.replace(index, known)  # noqa: PTH105  # both are plain strings
        return self.commit_tree(tree, *parents)

    def differing(self, folder: Path, commit: str) -> tuple[str, ...]:
        """Return the files of a folder that differ from a commit, and those that are gone.

        Ignored files that the commit has not are left out; of a nested repository its own path
        is told, with a `/` at its end.
        """
        listing = ("ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
        with self._index() as (_, environment):
            here = {**environment, "GIT_WORK_TREE": os.fspath(folder)}
            self.git("read-tree", commit, env=here)
            found = self._run(listing, here).stdout
        return tuple(sorted({os.fsdecode(name) for name in found.split(b"\0")[:-1]}))

    def ignored(self, folder: Path, paths: Sequence[str]) -> set[str]:
        """Return those of a folder's paths that the user's lists ignore; all must be there."""
        if not paths:
            return set()
        # A name could begin with what git takes for more than a name.
        asked = _ended(b"./" + os.fsencode(path) for path in paths)
        ask = ("check-ignore", "--no-index", "-z", "--stdin")
        # Git would look for the folder of an overlay where it is not mounted, and find no lists.
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="index-") as lists:
            copy_ignore_lists(folder, Path(lists), paths)
            said = self._run(ask, {"GIT_WORK_TREE": lists}, stdin=asked, fine=(0, 1)).stdout
        found = {os.fsdecode(name[2:]) for name in said.split(b"\0")[:-1]}
        return found | {path for path in paths if self._is_own(path)}

    def empty_folders(self) -> tuple[str, ...]:
        """Return the folders of the user's tree that hold nothing, which no commit can tell."""
        listing = ("ls-files", "-z", "--others", "--exclude-standard", "--directory")
        where = {
            "GIT_WORK_TREE": os.fspath(self.root),
            "GIT_INDEX_FILE": os.fspath(self.folder / "snapshot.index"),
        }
        found = self._run(listing, where).stdout
        names = [os.fsdecode(name[:-1]) for name in found.split(b"\0") if name.endswith(b"/")]
        return tuple(
            name
            for name in names
            if not self._is_own(name) and not (self.root / name / ".git").exists()
        )

    # -- versions --------------------------------------------------------------------------

    def commit(
        self, parent: str, writes: Mapping[str, Write | None], *, by: str = "cleveragents"
    ) -> str:
        """Return a commit that differs from its parent by these files; None takes one away."""
        author = by.encode("utf-8", "replace").translate(None, b"<>\n\0") or b"unknown"
        name = b"refs/changes/%s" % secrets.token_hex(8).encode()
        lines = [
            b"commit %s\nmark :1\n" % name,
            b"committer %s <cleveragents> 0 +0000\ndata 0\n" % author,
            b"from %s\n" % parent.encode(),
        ]
        # What goes makes room for what comes: a file for a folder, a folder for a file.
        lines += [b"D %s\n" % _quoted(path) for path, write in writes.items() if write is None]
        for path, write in writes.items():
            if write is None:
                continue
            if write.oid is not None:
                lines.append(b"M %o %s %s\n" % (write.mode, write.oid.encode(), _quoted(path)))
            else:
                size = len(write.data)
                lines.append(b"M %o inline %s\ndata %d\n" % (write.mode, _quoted(path), size))
                lines += [write.data, b"\n"]
        # The id is all we keep: a name for each commit would only pile up.
        lines.append(b"\nget-mark :1\nreset %s\nfrom %s\n\n" % (name, _NOWHERE))
        said = self.git("fast-import", "--quiet", stdin=b"".join(lines))
        return said.decode().strip()

    def commit_tree(self, tree: str, *parents: str) -> str:
        """Return a commit of a tree that is there already."""
        given = [argument for parent in parents for argument in ("-p", parent)]
        return self.git("commit-tree", tree, *given, "-m", "").decode().strip()

    def keep(self, data: bytes) -> str:
        """Keep a content and return the id of its blob."""
        said = self.git("hash-object", "-w", "--stdin", stdin=data, env=packing_for(data))
        return said.decode().strip()

    def tree_of(self, commit: str) -> str:
        """Return the id of a commit's tree: equal ids, equal files."""
        return self.git("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()

    def changes(self, old: str, new: str, *, renames: bool = False) -> tuple[TreeChange, ...]:
        """Return the files that differ between two commits, ordered by path."""
        finding = ("-M", "-l10000") if renames else ("--no-renames",)
        said = self.git("diff-tree", "-r", "-z", "--raw", "--no-abbrev", *finding, old, new)
        fields = iter(said.split(b"\0"))
        found = []
        for head in takewhile(bool, fields):
            old_mode, new_mode, old_oid, new_oid, status = head[1:].decode().split(" ")
            old_path = os.fsdecode(next(fields)) if status[0] in "RC" else None
            change = TreeChange(
                os.fsdecode(next(fields)),
                _blob(old_mode, old_oid),
                _blob(new_mode, new_oid),
                old_path,
            )
            found.append(change)
        return tuple(found)

    def files(self, commit: str, paths: Sequence[str] | None = None) -> dict[str, Blob]:
        """Return the files of a commit, or those among these paths that it has."""
        if paths is not None and not paths:
            return {}
        asked = paths or ()
        if sum(len(os.fsencode(path)) + 1 for path in asked) > _NAMES_BYTES_MAX:
            asked = ()
        listing = ("ls-tree", "-r", "-z", "--full-tree", commit, "--", *asked)
        listed = self.git(*listing, env={"GIT_LITERAL_PATHSPECS": "1"})
        wanted = None if paths is None else set(paths)
        found = {}
        for entry in listed.split(b"\0")[:-1]:
            about, _, name = entry.partition(b"\t")
            mode, _, oid = about.decode().split(" ")
            path = os.fsdecode(name)
            if wanted is None or path in wanted:
                found[path] = Blob(int(mode, 8), oid)
        return found

    def read(self, oids: Sequence[str]) -> Iterator[bytes]:
        """Return the contents of blobs, in order, one after the other."""
        with tempfile.TemporaryFile() as asked:
            asked.write("".join(f"{oid}\n" for oid in oids).encode())
            asked.seek(0)
            with subprocess.Popen(
                [git_program(), "cat-file", "--batch"],
                stdin=asked,
                stdout=subprocess.PIPE,
                env=self._environment,
            ) as process:
                assert process.stdout is not None, "it was asked for"
                for oid in oids:
                    _, _, size = process.stdout.readline().rpartition(b" ")
                    if not size.strip().isdigit():
                        raise refused("cat-file", f"the content {oid} is missing")
                    yield process.stdout.read(int(size))
                    process.stdout.read(1)

    def checkout(self, commit: str, folder: Path) -> None:
        """Write the whole tree of a commit into an empty folder."""
        with self._index() as (_, environment):
            self.git("read-tree", commit, env=environment)
            there = {**environment, "GIT_WORK_TREE": os.fspath(folder)}
            self.git("checkout-index", "--all", "--force", env=there)

    # -- inside ----------------------------------------------------------------------------

    def _make(self) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=self.home, prefix="git-"))
        try:
            run_git(("init", "--quiet", "--bare", "--template=", str(made)), clean_environment())
            (made / "info").mkdir()
            (made / "info" / "exclude").write_bytes(b"")
            # Whoever comes second finds the place taken, and uses what is there.
            with suppress(OSError):
                made.rename(self.folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _settle(self, name: str, data: bytes) -> None:
        """Write a file of settings, unless it says the same already."""
        path = self.folder / name
        if not path.is_file() or path.read_bytes() != data:
            beside = path.with_name(f"{path.name}-{secrets.token_hex(4)}")
            beside.write_bytes(data)
            beside.replace(path)

    def _add(self, folder: Path, environment: Mapping[str, str]) -> None:
        """Bring an index to what a folder holds, or refuse if not all of it can be read."""
        add = ("add", "--all", "--ignore-errors", "--", ".", f":(exclude,literal){self._own}")
        ran = self._run(add, environment, fine=(0, 1))
        some_left_out = left_out(os.fsdecode(ran.stderr), folder)
        listed = self._run(("ls-files", "-z", "--stage"), environment).stdout.split(b"\0")[:-1]
        staged = [entry.partition(b"\t") for entry in listed]
        gone = [name for about, _, name in staged if about[:6] == _GITLINK]
        if some_left_out:
            # The index still holds what was there before them.
            gone += [name for _, _, name in staged if _is_no_file(folder, name)]
        self._forget(environment, gone)

    def _ignored_of(self, commits: Iterable[str], environment: Mapping[str, str]) -> set[bytes]:
        """Return the files of commits that are ignored by now."""
        found = set()
        for commit in commits:
            names = self._run((*_IGNORED, f"--with-tree={commit}"), environment).stdout.split(b"\0")
            # Those of the index are among them.
            found |= set(map(os.fsencode, self.files(commit, [*map(os.fsdecode, names[:-1])])))
        return found

    def _forget_ignored(self, environment: Mapping[str, str], kept: set[bytes]) -> None:
        """Leave out what is ignored by now, although the last snapshot had it."""
        found = self._run(_IGNORED, environment).stdout.split(b"\0")[:-1]
        self._forget(environment, [name for name in found if name not in kept])

    def _forget(self, environment: Mapping[str, str], names: list[bytes]) -> None:
        if names:
            forget = ("update-index", "--force-remove", "-z", "--stdin")
            self._run(forget, environment, stdin=_ended(names))

    def _run(
        self,
        arguments: tuple[str, ...],
        where: Mapping[str, str],
        *,
        stdin: bytes = b"",
        fine: tuple[int, ...] = (0,),
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git on this repository inside the folder that `where` names as its working tree."""
        folder, environment = Path(where["GIT_WORK_TREE"]), {**self._environment, **where}
        return run_git(arguments, environment, stdin=stdin, folder=folder, fine=fine)

    def _is_own(self, path: str) -> bool:
        return path == self._own or path.startswith(f"{self._own}/")

    @contextmanager
    def _index(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Give an index of its own to one use."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="index-") as folder:
            index = f"{folder}/index"
            yield index, {"GIT_INDEX_FILE": index}


def _blob(mode: str, oid: str) -> Blob | None:
    return None if int(mode, 8) == 0 else Blob(int(mode, 8), oid)


def _ended(names: Iterable[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in names)


def _is_no_file(folder: Path, name: bytes) -> bool:
    path = folder / os.fsdecode(name)
    return not (path.is_symlink() or path.is_file())


def _quoted(path: str) -> bytes:
    """Write a path so that fast-import reads it back, whatever bytes it has."""
    octal = (
        rb"\%03o" % byte if byte < 32 or byte in b'"\\' else bytes((byte,))
        for byte in os.fsencode(path)
    )
    return b'"%s"' % b"".join(octal)
