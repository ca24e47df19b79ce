"""A small tree with every kind of change in it, and the question whether it is old or new."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cleveragents.domain.changeset import FileMode
from cleveragents.infrastructure.apply.survey import signature
from cleveragents.infrastructure.apply.target import Target
from cleveragents.infrastructure.apply.tree_apply import TreeApply

if TYPE_CHECKING:
    from pathlib import Path

HOME = ".cleveragents"
NOT_UTF8 = os.fsdecode(b"caf\xe9/na\xefve.txt")

#: What is there at first: content and mode; `->` is a symbolic link.
BEFORE = {
    "keep.txt": ("untouched", 0o644),
    "src/app.py": ("old", 0o640),
    "src/other.py": ("untouched too", 0o600),
    "run.sh": ("#!/bin/sh", 0o664),
    "ro.txt": ("read only", 0o444),
    "empty.txt": ("", 0o644),
    "gone/only.py": ("x", 0o644),
    "gone/deep/down.py": ("y", 0o644),
    "half/left.py": ("stays", 0o644),
    "half/right.py": ("goes", 0o644),
    "thing": ("a file", 0o644),
    "pkg/mod.py": ("in a folder", 0o644),
    "pkg/sub/mod.py": ("in a deeper one", 0o644),
    "conf": ("plain", 0o644),
    "link": ("-> keep.txt", None),
    "away": ("-> half", None),
    "moved.py": ("the same", 0o755),
    NOT_UTF8: ("old name", 0o644),
}
#: What shall be there, None for nothing; what is not named is untouched.
CHANGES = {
    "src/app.py": (b"new", None),
    "src/new/deep/er.py": (b"created", FileMode.REGULAR),
    "run.sh": (b"#!/bin/sh", FileMode.EXECUTABLE),
    "ro.txt": (b"still read only", FileMode.REGULAR),
    "empty.txt": (b"no longer", None),
    "zero.txt": (b"", FileMode.REGULAR),
    "gone/only.py": (None, None),
    "gone/deep/down.py": (None, None),
    "half/right.py": (None, None),
    "thing": (None, None),
    "thing/inside/file.py": (b"in a folder now", FileMode.REGULAR),
    "pkg/mod.py": (None, None),
    "pkg/sub/mod.py": (None, None),
    "pkg": (b"a file now", FileMode.EXECUTABLE),
    "conf": (b"src/app.py", FileMode.SYMLINK),
    "link": (b"src/app.py", None),
    "away": (None, None),
    "away/here.py": (b"where a link was", FileMode.REGULAR),
    "newlink": (b"nowhere", FileMode.SYMLINK),
    "moved.py": (None, None),
    "to/moved.py": (b"the same", FileMode.EXECUTABLE),
    NOT_UTF8: (b"new content", None),
}
#: One of each kind, for tests that try every call.
FEW = {
    path: CHANGES[path]
    for path in (
        "src/app.py",
        "src/new/deep/er.py",
        "run.sh",
        "gone/only.py",
        "gone/deep/down.py",
        "thing",
        "thing/inside/file.py",
        "pkg/mod.py",
        "pkg/sub/mod.py",
        "pkg",
        "conf",
        NOT_UTF8,
    )
}


@dataclass(frozen=True)
class Seen:
    kind: str
    mode: int
    content: bytes
    inode: int
    mtime_ns: int


def plant(root: Path, changes: dict = CHANGES) -> None:
    """Make the tree, as far as these changes are about it."""
    root.mkdir(exist_ok=True)
    for name, (text, mode) in BEFORE.items():
        if name in CHANGES and name not in changes:
            continue
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if mode is None:
            path.symlink_to(text.removeprefix("-> "))
        else:
            path.write_text(text)
            path.chmod(mode)
    (root / "gone").chmod(0o750)


def look(root: Path) -> dict[str, Seen]:
    """All that is in a tree, without our own folder; folders without time and number."""
    found = {}
    for folder, folders, files in os.walk(root):
        if folder == str(root):
            folders.remove(HOME) if HOME in folders else None
        for name in folders + files:
            path = os.path.join(folder, name)  # noqa: PTH118  # os.walk speaks text
            status = os.lstat(path)
            key = os.path.relpath(path, root)
            if os.path.islink(path):  # noqa: PTH114  # as above
                seen = Seen("link", 0, os.fsencode(os.readlink(path)), 0, 0)  # noqa: PTH115  # as above
            elif name in folders:
                seen = Seen("folder", status.st_mode & 0o7777, b"", 0, 0)
            else:
                with open(path, "rb") as file:  # noqa: PTH123  # as above
                    seen = Seen("file", status.st_mode & 0o7777, file.read(), 0, 0)
            if seen.kind != "folder":
                seen = replace(seen, inode=status.st_ino, mtime_ns=status.st_mtime_ns)
            found[key] = seen
    return found


def targets(root: Path, changes: dict = CHANGES) -> list[Target]:
    return [
        Target(path, after, mode, signature(root, path)) for path, (after, mode) in changes.items()
    ]


def target(root: Path, path: str, after: bytes | None, mode: FileMode | None = None) -> Target:
    return Target(path, after, mode, signature(root, path))


def check_new(root: Path, before: dict[str, Seen], changes: dict = CHANGES) -> None:
    """Fail unless every change is there, and nothing else."""
    now = look(root)
    for path, (after, mode) in changes.items():
        if after is None:
            assert path not in now or now[path].kind == "folder", path
        else:
            assert now[path].content == after, path
            if mode is not None and mode is not FileMode.SYMLINK:
                assert bool(now[path].mode & 0o100) == (mode is FileMode.EXECUTABLE), path
    untouched = {p: s for p, s in before.items() if s.kind != "folder" and p not in changes}
    assert {p: now.get(p) for p in untouched} == untouched
    files = {p for p, s in now.items() if s.kind != "folder"}
    assert files == untouched.keys() | {p for p, (after, _) in changes.items() if after is not None}
    folders = {p for p, s in now.items() if s.kind == "folder"}
    assert folders == {p.rpartition("/")[0] for p in files if "/" in p} | {
        "src/new",
        "thing",
    }


def check_clean(root: Path) -> None:
    """Fail if anything of an apply is left."""
    ours = {one.name for one in (root / HOME).iterdir()} if (root / HOME).exists() else set()
    assert ours <= {".gitignore", "apply.lock"}
    hidden = [f for f, folders, _ in os.walk(root) if any(".cleveragents-" in d for d in folders)]
    assert hidden == []


def old_or_new(root: Path, before: dict[str, Seen], changes: dict = CHANGES) -> str:
    """Return which it is; fail when it is neither."""
    if look(root) == before:
        return "old"
    check_new(root, before, changes)
    return "new"


def engine(root: Path, **options) -> TreeApply:
    return TreeApply(root, root / HOME, **options)
