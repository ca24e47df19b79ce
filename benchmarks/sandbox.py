"""What a sandbox of a large repository costs, against `git worktree add` on the same disk.

A generated repository of 20,000 files of 4 KB stands for the user's.
The yardstick and our own worktrees are made in turns, the best of each counts, because a busy
disk only ever adds: a yardstick that had to wait would flatter us. Overlays come after.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Final

from _yardstick import Goals
from cleveragents.infrastructure.git.repository import GitRepository, Write
from cleveragents.infrastructure.sandbox.sandbox import PlanTree
from cleveragents.infrastructure.sandbox.sandboxes import SandboxManager
from cleveragents.infrastructure.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cleveragents.infrastructure.sandbox.sandbox import Sandbox

FOLDERS: Final = 200
FILES: Final = 100
SIZE_BYTES: Final = 4096
SANDBOXES: Final = 100
THREADS: Final = 16
EDITS: Final = 5
ROUNDS: Final = 3
#: Files that a plan has changed before, and its steps of one file, each with a sandbox of its own.
CHANGED: Final = 5000
STEPS: Final = 30


def plant(root: Path) -> None:
    """Make the user's repository, with one commit."""
    chance = random.Random(1)
    for folder in range(FOLDERS):
        place = root / f"package{folder}"
        place.mkdir(parents=True)
        for file in range(FILES):
            (place / f"module{file}.py").write_bytes(chance.randbytes(SIZE_BYTES))
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "all")):
        git(root, "-c", "user.name=bench", "-c", "user.email=bench", *arguments)


def git(root: Path, *arguments: str) -> None:
    """Run git on the user's repository."""
    subprocess.run(["git", "-C", str(root), *arguments], check=True, stdout=subprocess.DEVNULL)


def seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@contextmanager
def managed(
    repository: GitRepository, store: Store, commit: str, kind: str
) -> Iterator[SandboxManager]:
    """Give a manager for one kind, and clean up what it made."""
    tree = PlanTree(commit, commit)
    with SandboxManager(repository, store, tree_of=lambda _: tree, kind=kind) as manager:
        yield manager
        for info in manager.list():
            if info.kind == kind and info.state == "live":
                manager.release(info.id, discard=True)


def edit_all(sandboxes: list[Sandbox]) -> None:
    """Change a few files in each, as actors do."""
    for index, sandbox in enumerate(sandboxes):
        for number in range(EDITS):
            path = sandbox.path / f"package{index % FOLDERS}" / f"module{number}.py"
            path.write_bytes(path.read_bytes() + b"# edited\n")


def worktrees(
    root: Path, repository: GitRepository, store: Store, commit: str
) -> tuple[float, float]:
    """Return the best of `git worktree add` and of our worktrees, made in turns."""
    took: dict[str, list[float]] = {"theirs": [], "ours": []}
    with managed(repository, store, commit, "worktree") as manager:
        manager.prepare(commit)
        for number in range(ROUNDS):
            there = str(root.parent / f"worktree{number}")
            turns: list[tuple[str, Callable[[], object]]] = [
                ("theirs", partial(git, root, "worktree", "add", "--quiet", "--detach", there)),
                ("ours", partial(manager.create, "bench", "worktree", 1)),
            ]
            # Neither pays for what the other left to be written, nor always comes first.
            for name, work in turns if number % 2 else turns[::-1]:
                os.sync()
                took[name].append(seconds(work))
    return min(took["theirs"]), min(took["ours"])


def overlays(goals: Goals, manager: SandboxManager, yardstick: float) -> None:
    """Measure sandboxes one after the other, at once, and what was written into all."""

    def create(index: int) -> Sandbox:
        return manager.create("bench", f"node{index}", 1)

    alone = [seconds(partial(create, index)) for index in range(SANDBOXES)]
    with ThreadPoolExecutor(THREADS) as pool:
        started = time.perf_counter()
        made = list(pool.map(create, range(SANDBOXES)))
        together = (time.perf_counter() - started) / SANDBOXES
    editing = seconds(partial(edit_all, made))
    started = time.perf_counter()
    found = [sandbox.touched() for sandbox in made]
    scanning = time.perf_counter() - started
    edits = SANDBOXES * EDITS
    one, many = mean(alone) / yardstick, together / yardstick
    print(f"  overlay, one after the other    {mean(alone) * 1e3:10.2f} ms each, {one:.4f}")
    print(f"  overlay, {THREADS} threads             {together * 1e3:10.2f} ms each, {many:.4f}")
    print(f"  {edits} first edits of a file     {editing / edits * 1e3:10.2f} ms each")
    print(f"  what was touched in {SANDBOXES}         {scanning * 1e3:10.2f} ms for all\n")
    goals.at_most("overlay, one after the other, ratio", one, 0.02)
    goals.at_most(f"overlay, {THREADS} threads, ratio", many, 0.02)
    goals.exactly("sandboxes made at once", len(made), SANDBOXES)
    goals.exactly("edits found", sum(len(paths or ()) for paths in found), edits)


def steps(
    goals: Goals, repository: GitRepository, store: Store, commit: str, yardstick: float
) -> None:
    """Measure the first sandbox after each step of a plan that has changed many files."""
    changed = (f"package{index // FILES}/module{index % FILES}.py" for index in range(CHANGED))
    tree = PlanTree(commit, repository.commit(commit, dict.fromkeys(changed, file(0))))
    took = []
    with SandboxManager(repository, store, tree_of=lambda _: tree, kind="overlay") as manager:
        first = seconds(lambda: manager.create("steps", "first", 1))
        for index in range(STEPS):
            tree = PlanTree(commit, repository.commit(tree.head, {f"step{index}": file(index)}))
            took.append(seconds(partial(manager.create, "steps", f"step{index}", 1)))
        for info in manager.list("steps"):
            manager.release(info.id, discard=True)
    one = mean(took) / yardstick
    print(f"  overlay, {CHANGED:,} files changed     {first * 1e3:10.2f} ms, the first")
    print(f"  overlay, a step of one file then {mean(took) * 1e3:9.2f} ms each, {one:.4f}\n")
    goals.at_most("overlay, a step of one file, ratio", one, 0.02)


def file(number: int) -> Write:
    """Return a small file."""
    return Write(0o100644, f"{number}\n".encode())


def main() -> None:
    """Measure all in one run on one disk."""
    goals = Goals()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        root = Path(folder) / "user"
        plant(root)
        repository = GitRepository(root, Path(folder) / "state")
        commit = repository.snapshot()
        with Store(Path(folder) / "state" / "state.db") as store:
            yardstick, ours = worktrees(root, repository, store, commit)
            print(f"{FOLDERS * FILES:,} files of {SIZE_BYTES} bytes")
            print(f"  git worktree add, the yardstick {yardstick * 1e3:10.2f} ms")
            print(f"  worktree                        {ours * 1e3:10.2f} ms")
            with managed(repository, store, commit, "copy") as manager:
                os.sync()
                once = seconds(lambda: manager.prepare(commit))
                copying = seconds(lambda: manager.create("bench", "copy", 1))
            print(f"  copy                            {copying * 1e3:10.2f} ms")
            print(f"  snapshot, once for a plan       {once * 1e3:10.2f} ms", end="")
            print(f", {once / yardstick:.2f} of the yardstick")
            goals.at_most("worktree, ratio", ours / yardstick, 1.2)
            with managed(repository, store, commit, "overlay") as manager:
                why = manager.available()["overlay"]
                if why is None:
                    os.sync()
                    overlays(goals, manager, yardstick)
                    steps(goals, repository, store, commit, yardstick)
                else:
                    print(f"  overlays are not available here: {why}")
    goals.finish()


if __name__ == "__main__":
    main()
