"""The Python files of a tree: what git would show, or all but the usual folders."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FILE_BYTES_MAX", "is_test", "list_files", "read_source"]

#: Larger files are generated or data.
FILE_BYTES_MAX: Final = 1_000_000
_SKIPPED: Final = frozenset(
    {"__pycache__", "build", "dist", "node_modules", "site-packages", "venv", "env"}
)
_TEST_FOLDERS: Final = frozenset({"tests", "test", "testing"})
_GIT: Final = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.py")
_GIT_SECONDS_MAX: Final = 60.0


def list_files(root: Path, targets: Sequence[str]) -> dict[str, str]:
    """Return the Python files below the targets, relative to the root, sorted.

    To each belongs what its path is below the target: who names a folder of tests wants it.
    Links, and what git ignores, are left out.
    """
    files: dict[str, str] = {}
    folders: list[str] = []
    for name in sorted({_relative(root, target) for target in targets or (".",)}):
        if (root / name).is_file():
            files[name] = ""
        else:
            folders.append("" if name == "." else f"{name}/")
    if folders:
        listed = _by_git(root)
        for path in _by_walk(root) if listed is None else listed:
            above = next((folder for folder in folders if path.startswith(folder)), None)
            if above is not None and not (root / path).is_symlink():
                files.setdefault(path, path.removeprefix(above))
    return dict(sorted(files.items()))


def _relative(root: Path, target: str) -> str:
    path = os.path.relpath(root / target, root)
    return path.replace(os.sep, "/")


def _by_git(root: Path) -> list[str] | None:
    """Return what git lists, or None where there is no repository or no git."""
    try:
        done = subprocess.run(
            _GIT,
            cwd=root,
            capture_output=True,
            timeout=_GIT_SECONDS_MAX,
            check=False,
            env={"PATH": os.environ.get("PATH", os.defpath), "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    paths = [os.fsdecode(one) for one in done.stdout.split(b"\0") if one]
    return [path for path in paths if (root / path).is_file()]


def _by_walk(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED
            and not name.startswith(".")
            and not Path(folder, name, "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            if name.endswith(".py"):
                yield _relative(root, os.path.join(folder, name))  # noqa: PTH118  # fast


def is_test(path: str) -> bool:
    """Say whether a file is a test: it speaks of sharing, but is nobody's shared state."""
    *folders, name = path.split("/")
    is_named_so = name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    return is_named_so or not _TEST_FOLDERS.isdisjoint(folders)


def read_source(path: Path) -> tuple[bytes, str]:
    """Return the bytes of a file, and the reason if they are not to be read."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            return b"", f"It is larger than {FILE_BYTES_MAX // 1000} kB"
        source = path.read_bytes()
    except OSError as error:
        return b"", f"It cannot be read: {error.strerror or error}"
    return (b"", "It is not text") if b"\0" in source else (source, "")
