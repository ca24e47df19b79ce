"""Reads commits by the program git, which may be missing, refuse or hang."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.infrastructure.code_index.features import numbered
from cleveragents.infrastructure.code_index.history import Commit
from cleveragents.infrastructure.git.program import UNARMED, configured, foreign_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["GitSilent", "Head", "commits_of", "head_of", "hint_of", "ids_before"]

#: Older commits are not looked at.
COMMITS_MAX: Final = 5_000
_MESSAGE_CHARS_MAX: Final = 4_000
_TITLE_CHARS_MAX: Final = 200
#: Begins a commit; what follows it up to three NULs cannot hold one.
_BEGIN: Final = "\x01"


class GitSilent(Exception):  # noqa: N818  # told as a note, never to a user as an error
    """Git gave no answer; the text says why."""


class Head(NamedTuple):
    """The commit that a tree stands on."""

    id: str
    #: The root, from the top of the repository, with a slash at its end; empty for the top.
    prefix: str


def hint_of(root: str) -> tuple[str, ...] | None:
    """Return what cannot stay the same when another commit is checked out; None to ask git.

    It saves a process for each request: these are three small files.
    """
    for top in (Path(root), *Path(root).parents):
        git = top / ".git"
        pointer = _line(git)
        if pointer is not None:
            git = top / pointer.removeprefix("gitdir:").strip()
        head = _line(git / "HEAD")
        if head is None:
            continue
        shared = git / (_line(git / "commondir") or "")
        if (shared / "reftable").exists():
            return None
        if not head.startswith("ref:"):
            return (head,)
        return head, _line(shared / head.removeprefix("ref:").strip()) or _packed(shared)
    return ()


def _line(file: Path) -> str | None:
    try:
        return file.read_text("utf-8", "surrogateescape").strip()
    except OSError:
        return None


def _packed(shared: Path) -> str:
    try:
        status = os.stat(shared / "packed-refs")  # noqa: PTH116  # as in freshness
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def head_of(root: str, timeout_s: float) -> Head:
    """Return the commit that the tree stands on."""
    said = _git(root, ("rev-parse", "--show-prefix", "--verify", "HEAD^{commit}"), timeout_s)
    prefix, _, name = said.removesuffix("\n").rpartition("\n")
    return Head(name, prefix)


def ids_before(root: str, head: str, timeout_s: float) -> list[str]:
    """Return the ids of a commit and its ancestors, the newest first, without merges."""
    arguments = ("rev-list", "--no-merges", f"--max-count={COMMITS_MAX}", head, "--")
    return _git(root, arguments, timeout_s).split()


def commits_of(root: str, ids: Sequence[str], timeout_s: float) -> list[Commit]:
    """Read commits."""
    arguments = (
        "log",
        "--no-walk=unsorted",
        "--stdin",
        "-z",
        "--name-status",
        "--no-color",
        "--no-ext-diff",
        "--no-show-signature",
        "--encoding=UTF-8",
        "--diff-merges=off",
        "--root",
        "--format=format:%x01%H%x00%ct%x00%B%x00",
    )
    given = "".join(f"{one}\n" for one in ids).encode()
    try:
        said = _git(root, (*arguments, "--find-renames"), timeout_s, given)
    except GitSilent:
        # A clone without old contents cannot compare them; names are there.
        said = _git(root, (*arguments, "--no-renames"), timeout_s, given)
    return list(_parsed(said.split("\0")))


def _parsed(words: list[str]) -> Iterator[Commit]:
    at = 0
    while at < len(words):
        name = words[at].lstrip("\n")
        if not name.startswith(_BEGIN):
            at += 1
            continue
        when, message = words[at + 1], words[at + 2].strip()
        at += 3
        files: list[str] = []
        renames: list[tuple[str, str]] = []
        while at < len(words) and not words[at].startswith(_BEGIN):
            status = words[at].lstrip("\n")
            if not status:
                at += 1
            elif status[0] in "RC":
                if status[0] == "R":
                    renames.append((words[at + 2], words[at + 1]))
                files.append(words[at + 2])
                at += 3
            else:
                files.append(words[at + 1])
                at += 2
        yield Commit(
            name.removeprefix(_BEGIN),
            int(when),
            message.partition("\n")[0][:_TITLE_CHARS_MAX],
            numbered(message[:_MESSAGE_CHARS_MAX]),
            tuple(files),
            tuple(renames),
        )


def _git(root: str, arguments: tuple[str, ...], timeout_s: float, given: bytes = b"") -> str:
    program = shutil.which("git")
    if program is None:
        raise GitSilent("the program `git` is not installed")
    environment = {
        **foreign_environment(),
        **configured(UNARMED),
        # To ask is to wait for a network, or for a person; an answer without is better.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    try:
        ran = subprocess.run(
            [program, *arguments],
            cwd=root,
            env=environment,
            input=given,
            capture_output=True,
            check=False,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        raise GitSilent(f"`git {arguments[0]}` took longer than {timeout_s:g} s") from None
    except OSError as error:
        raise GitSilent(f"`git` could not be started: {error.strerror}") from None
    if ran.returncode != 0:
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise GitSilent(f"`git {arguments[0]}` refused: {said[0].rstrip('.')}")
    return ran.stdout.decode("utf-8", "surrogateescape")
