"""A small user's tree with every nasty file, managers on it, and processes that die on it.

As a program it makes a sandbox, writes into it, says where it is, and waits to be killed;
given the name of a method it kills itself there.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cleveragents.infrastructure.git.repository import GitRepository, Write
from cleveragents.infrastructure.sandbox.sandbox import PlanTree
from cleveragents.infrastructure.sandbox.sandboxes import SandboxManager
from cleveragents.infrastructure.store import Store

KINDS = ("overlay", "worktree", "copy")
PACKAGE = "cleveragents.infrastructure.sandbox"
PATIENCE_S = 20.0


@dataclass
class World:
    root: Path
    repository: GitRepository
    store: Store
    base: str
    head: str

    @classmethod
    def open(cls, root: Path, store: Path | None = None) -> World:
        """Open the state beside a tree; the plan's base and head stand in a file for others."""
        home = root / ".cleveragents"
        repository = GitRepository(root, home)
        heads = home / "heads"
        if not heads.exists():
            heads.write_text(repository.snapshot())
        base = heads.read_text()
        return cls(root, repository, Store(store or home / "state.db"), base, base)

    def tree_of(self, _: str) -> PlanTree:
        return PlanTree(self.base, self.head)

    def manager(self, kind: str = "auto", **options) -> SandboxManager:
        options.setdefault("tree_of", self.tree_of)
        return SandboxManager(self.repository, self.store, kind=kind, **options)

    def move_head(self, writes: dict[str, Write | None]) -> None:
        self.head = self.repository.commit(self.head, writes)

    def leftovers(self) -> list[str]:
        """What a perfect clean-up has removed: folders of the dead, and half-made things."""
        home = self.root / ".cleveragents"
        parts = [*home.glob("snapshots/*.part"), *home.glob("layers/*.part")]
        return sorted(str(one.relative_to(home)) for one in (*parts, *home.glob("sandboxes/*/*")))


def file(text: str | bytes = "", mode: int = 0o100644) -> Write:
    return Write(mode, text.encode() if isinstance(text, str) else text)


def plant(root: Path) -> None:
    """Fill a tree with what breaks careless programs."""
    files = {
        b"plain.txt": b"one\ntwo\n",
        b"crlf.txt": b"one\r\ntwo\r\n",
        b"binary": bytes(range(256)),
        b"empty.txt": b"",
        b"dir/deep/file": b"deep",
        b"dir/other": b"other",
        b"caf\xe9": b"not utf-8",
        b"new\nline": b"1",
        b"quo\"te's": b"2",
        b" sp ace ": b"3",
        b"co:lon,comma;=\\": b"4",
        b"-dash": b"5",
        b":(glob)*": b"6",
        b"ignored.txt": b"never seen",
        b".gitignore": b"ignored.txt\nbuilt/\n*.o\n",
        b".gitattributes": b"* text=auto eol=crlf\n",
        b"built/output": b"never seen",
        b"objects/in/file.o": b"never seen",
        b"run.sh": b"#!/bin/sh\n",
    }
    for name, data in files.items():
        path = root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("plain.txt")
    (root / "folder-link").symlink_to("dir")
    (root / "dangling").symlink_to("no/such/file")
    (root / "out").symlink_to("/etc/passwd")
    for name in ("hollow/nested/deeper", "dir/void", "built/empty"):
        (root / name).mkdir(parents=True)


def seen(top: Path) -> dict[str, object]:
    """Return all that a tree shows, but for what belongs to git and to us."""
    found: dict[str, object] = {}
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in {".git", ".cleveragents"}]
        for name in (*folders, *files):
            path = Path(folder, name)
            if name == ".git":
                continue
            found[str(path.relative_to(top))] = _shown(path)
    return found


def _shown(path: Path) -> object:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return ("link", str(path.readlink()))
    if stat.S_ISDIR(mode):
        return "folder"
    return ("file", bool(mode & 0o100), path.read_bytes())


def expected(root: Path) -> dict[str, object]:
    ignored = ("ignored.txt", "built", "objects")
    return {
        name: what for name, what in seen(root).items() if name.partition("/")[0] not in ignored
    }


# -- other processes -----------------------------------------------------------------------


class Other:
    """A process of its own that holds a sandbox; `kill` is a SIGKILL, `said` what it told."""

    def __init__(self, root: Path, kind: str, dies_at: str = "") -> None:
        command = [sys.executable, __file__, os.fspath(root), kind, dies_at]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.said = json.loads(line) if line else {}
        self._keeper = os.pidfd_open(int(self.said["keeper"])) if self.said.get("keeper") else None

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> None:
        self.process.communicate(timeout=PATIENCE_S)

    def keeper_ended(self) -> bool:
        """Wait for the end of the keeper of its mounts."""
        if self._keeper is None:
            return True
        ready, _, _ = select.select([self._keeper], [], [], PATIENCE_S)
        os.close(self._keeper)
        return bool(ready)


def die_at(method: str) -> None:
    """Kill this process where a method is called (`<module>:<Class>.<method>`)."""
    module, _, rest = method.partition(":")
    owner, _, name = rest.rpartition(".")
    place = importlib.import_module(f"{PACKAGE}.{module}")
    setattr(getattr(place, owner) if owner else place, name, _die)


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    root, kind, dies_at = sys.argv[1:]
    world = World.open(Path(root))
    if (moved := Path(root) / ".cleveragents" / "moved").exists():
        world.head = moved.read_text()
    manager = world.manager(kind)
    if dies_at:
        die_at(dies_at)
    sandbox = manager.create("p", "n", 1)
    (sandbox.path / "written").write_text("by the dead")
    (sandbox.path / "plain.txt").unlink()
    if dies_at:
        manager.release(sandbox.id, discard=True)
    keeper = sandbox.ground.enter[-2] if sandbox.ground.enter else None
    sys.stdout.write(json.dumps({"id": sandbox.id, "keeper": keeper}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
