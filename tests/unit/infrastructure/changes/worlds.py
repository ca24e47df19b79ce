"""A user's tree with plans that changed it, made in milliseconds: no sandbox, real merges."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cleveragents.domain.changeset import ChangeEntry
from cleveragents.infrastructure.git.repository import Write
from cleveragents.infrastructure.store import Store
from cleveragents.workspace import PlanChanges

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAN = "p-1"
LINES = [f"line {number}" for number in range(1, 21)]
#: Nobody's configuration but what a test sets; every commit has an author.
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A U Thor",
    "GIT_AUTHOR_EMAIL": "author@example.org",
    "GIT_COMMITTER_NAME": "A U Thor",
    "GIT_COMMITTER_EMAIL": "author@example.org",
}


def text(**changed: str) -> bytes:
    """Twenty lines, some of them changed: `text(l3="new")`."""
    lines = [changed.get(f"l{number}", line) for number, line in enumerate(LINES, 1)]
    return "".join(f"{line}\n" for line in lines).encode()


def file(data: bytes | str, mode: int = 0o100644) -> Write:
    return Write(mode, data.encode() if isinstance(data, str) else data)


@dataclass
class World:
    root: Path
    store: Store
    changes: PlanChanges
    #: Of tests of the command line: what runs commands in the tree.
    terminal: object = None

    @property
    def applies(self):
        return self.changes.applies

    def begin(self, plan: str = PLAN) -> str:
        return self.changes.trees.begin(plan).base

    def work(
        self,
        writes: dict[str, Write | bytes | None],
        actor: str = "ann",
        *,
        plan: str = PLAN,
        start: str | None = None,
    ) -> str:
        """Let an actor change files of the plan's tree, seal and merge it; return its changeset."""
        tree = self.changes.trees.begin(plan)
        start = start or tree.head
        made = {
            path: file(data) if isinstance(data, bytes) else data for path, data in writes.items()
        }
        theirs = self.changes.repository.commit(start, made)
        changeset = self.changes.changesets.start(plan, actor=actor, node=f"node-{actor}")
        told = [
            ChangeEntry.delete(path, b"") if write is None else ChangeEntry.create(path, write.data)
            for path, write in sorted(made.items(), key=lambda item: item[1] is not None)
        ]
        self.changes.changesets.record(changeset, *told)
        self.changes.changesets.finish(changeset)
        self.changes.trees.seal(plan, changeset, start, theirs)
        self.changes.trees.merge(changeset)
        return changeset

    def write(self, path: str, data: bytes | str, mode: int | None = None) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)
        if mode is not None:
            place.chmod(mode)
        return place

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def git(self, *arguments: str, **environment: str) -> str:
        return git(self.root, *arguments, **environment)

    def events(self, *kinds: str) -> list[str]:
        with self.store.read() as connection:
            found = connection.execute("SELECT kind FROM events ORDER BY seq").fetchall()
        return [kind for (kind,) in found if kind.startswith(kinds or ("plan.", "apply."))]


def git(folder: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **GIT, **environment},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return os.fsdecode(done.stdout)


def look(root: Path) -> dict[str, tuple[object, ...]]:
    """All files of a tree with mode, time and content; without git's and our own folder."""
    found = {}
    for path in root.rglob("*"):
        name = path.relative_to(root)
        about = path.lstat()
        if stat.S_ISDIR(about.st_mode) or name.parts[0] in {".git", ".cleveragents"}:
            continue
        data = path.readlink() if path.is_symlink() else path.read_bytes()
        found[str(name)] = (oct(about.st_mode), about.st_mtime_ns, data)
    return found


@contextmanager
def world(root: Path, *, repository: bool = False) -> Iterator[World]:
    """Open a tree with `app.txt` of twenty lines and a few other files."""
    root.mkdir(exist_ok=True)
    if repository:
        git(root, "init", "--quiet", "--initial-branch=main")
    here = World(root, Store(root / ".cleveragents" / "state.db"), None)
    (root / ".cleveragents" / ".gitignore").write_text("*\n")
    here.write("app.txt", text())
    here.write("src/one.py", "one = 1\n")
    here.write("src/two.py", "two = 2\n")
    here.write("src/deep/three.py", "three = 3\n")
    here.write("run.sh", "#!/bin/sh\n", 0o755)
    here.write(".gitignore", "*.log\n")
    if repository:
        git(root, "add", ".")
        git(root, "commit", "--quiet", "--message", "first")
    with here.store:
        here.changes = PlanChanges(root, here.store)
        yield here


def ann_and_bob(here: World) -> None:
    """Let Ann change line 3 and make a file, then Bob change line 10 and remove one."""
    here.work({"app.txt": text(l3="ann"), "ann.txt": b"ann\n"}, "ann")
    here.work({"app.txt": text(l3="ann", l10="bob"), "src/two.py": None}, "bob")


@contextmanager
def copied(template: Path, root: Path) -> Iterator[World]:
    """Open a copy of a tree that was closed: what many tests begin with is made only once."""
    shutil.copytree(template, root, symlinks=True, dirs_exist_ok=True)
    with Store(root / ".cleveragents" / "state.db") as store:
        yield World(root, store, PlanChanges(root, store))
