"""Folders as users have them, and what is in them byte for byte."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "user",
    "GIT_AUTHOR_EMAIL": "user@example.org",
    "GIT_COMMITTER_NAME": "user",
    "GIT_COMMITTER_EMAIL": "user@example.org",
}


def git(folder, *arguments, fine=(0,)):
    """Run the user's own git."""
    ran = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **IDENTITY},
        capture_output=True,
        check=False,
    )
    assert ran.returncode in fine, ran.stderr
    return ran.stdout


def put(folder, path, data=b"", mode=0o644):
    """Write a file, with the folders above it."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    file.chmod(mode)


def contents(folder):
    """Return every file below a folder with its kind, its executable bit and its bytes."""
    found = {}
    for above, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in {".git", ".cleveragents"}]
        for name in {*folders, *names} - {".git"}:
            path = Path(above, name)
            mode, key = path.lstat().st_mode, str(path.relative_to(folder))
            if stat.S_ISLNK(mode):
                found[key] = ("link", os.fsencode(path.readlink()))
            elif stat.S_ISREG(mode):
                found[key] = ("x" if mode & stat.S_IXUSR else "-", path.read_bytes())
    return found


def fingerprint(folder):
    """Return a hash of every byte, mode and time below a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        digest.update(repr((path, found.st_mode, found.st_mtime_ns)).encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()
