"""A process that applies many changes to a tree, or recovers it, until somebody kills it.

Run as `python applier.py ROOT FILES STATE apply|wait|recover|fail|bare [POINT N]`: it says `begin`
when it starts and `end` when it is done. The tree has two states, `a` and `b`, and it leads to
the named one. With a named point, or `any`, it kills itself at the n-th time it gets there.
`wait` looks at the tree, and applies when it gets a line. `fail` lets the last step of the flip
fail, so that all is taken back. `bare` is the planted bug, an apply without a journal.
"""

from __future__ import annotations

import errno
import itertools
import os
import signal
import sys
from pathlib import Path

from cleveragents.domain.changeset import FileMode
from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.apply import journal
from cleveragents.infrastructure.apply.survey import signatures
from cleveragents.infrastructure.apply.target import Target
from cleveragents.infrastructure.apply.tree_apply import TreeApply

HOME = ".cleveragents"
NOTE = b"what the caller wants to know again\x00\xff"
#: What happens to every sixth file.
KINDS = ("modify", "delete", "execute", "relink", "read-only", "untouched")


def name(number: int) -> str:
    """Folders of 12 files, and some that hold nothing but what is deleted."""
    folder = f"gone/{number // 120}" if number % 60 == 1 else f"d{number % 200}/e{number % 7}"
    return f"{folder}/f{number}.txt"


def plant(root: Path, files: int) -> None:
    for number in range(files):
        path = root / name(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind(number) == "relink":
            path.symlink_to(f"old-{number}")
        else:
            path.write_bytes(f"old {number}\n".encode() * 20)
            path.chmod(0o444 if kind(number) == "read-only" else 0o640)


def kind(number: int) -> str:
    return KINDS[number % len(KINDS)]


def wanted(files: int, state: str) -> dict[str, tuple[bytes | None, FileMode | None]]:
    """What is at each path that changes, in state `a` and in state `b`."""
    is_a = state == "a"
    found: dict[str, tuple[bytes | None, FileMode | None]] = {}
    for number in range(files):
        path, old = name(number), f"old {number}\n".encode() * 20
        new = f"new {number}\n".encode() * 30
        match kind(number):
            case "modify" | "read-only":
                found[path] = (old if is_a else new, FileMode.REGULAR)
            case "delete":
                found[path] = (old if is_a else None, FileMode.REGULAR)
            case "execute":
                found[path] = (old, FileMode.REGULAR if is_a else FileMode.EXECUTABLE)
            case "relink":
                link = f"{'old' if is_a else 'new'}-{number}"
                found[path] = (link.encode(), FileMode.SYMLINK)
        if number % 40 == 0:
            found[f"made/{number}/deep/f"] = (None if is_a else new, FileMode.REGULAR)
    return found


def targets(root: Path, wishes: dict[str, tuple[bytes | None, FileMode | None]]) -> list[Target]:
    """Compare the tree with what shall be there."""
    files = dict(sorted(wishes.items()))
    return [
        Target(path, after, mode, before)
        for (path, (after, mode)), before in zip(
            files.items(), signatures(root, files), strict=True
        )
    ]


def look(root: Path) -> dict[str, tuple[bytes, int, int, int]]:
    """All files of a tree with content, mode, number and time."""
    found: dict[str, tuple[bytes, int, int, int]] = {}
    for folder, folders, files in os.walk(root):
        if folder == str(root) and HOME in folders:
            folders.remove(HOME)
        if not folders and not files:
            found[os.path.relpath(folder, root)] = (b"an empty folder", 0, 0, 0)
        for one in files:
            path = Path(folder, one)
            status = path.lstat()
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            seen = (content, status.st_mode, status.st_ino, status.st_mtime_ns)
            found[os.path.relpath(path, root)] = seen
    return found


def dying_at(point: str, number: int):
    passed = itertools.count(1)

    def fault(reached: str) -> None:
        if point in {reached, "any"} and next(passed) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault


def say(word: str) -> None:
    os.write(1, f"{word}\n".encode())


def main() -> None:
    folder, files, state, what, *point = sys.argv[1:]
    root = Path(folder)
    dies = dying_at(point[0], int(point[1])) if point else lambda _: None

    def fault(reached: str) -> None:
        dies(reached)
        if reached == "after-flip" and what == "fail":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if what == "bare":
        journal.commit = lambda *_: None
    tree = TreeApply(root, root / HOME, on_recovered=lambda one: say(one.outcome), fault=fault)
    if what == "recover":
        say("begin")
        tree.recover()
    else:
        wishes = targets(root, wanted(int(files), state))
        say("begin")
        if what == "wait":
            sys.stdin.readline()
        try:
            tree.apply("p1", wishes, note=NOTE)
        except PlanError as error:
            say(error.code)
    say("end")


if __name__ == "__main__":
    main()
