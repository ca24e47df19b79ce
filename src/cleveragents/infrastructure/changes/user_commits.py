"""A plan's changes as a commit of the user's own repository, when the user asks for one.

Nothing else of ours writes to the user's repository.
Contents go through the user's own filters and line ends, as `git add` would send them.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import PlanError, RequestError, SandboxError, SetupError
from cleveragents.domain.paths import folders_of
from cleveragents.infrastructure.changes.selection import shown
from cleveragents.infrastructure.git.program import (
    UNARMED,
    configured,
    foreign_environment,
    run_git,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cleveragents.infrastructure.changes.plan_apply import Prospect
    from cleveragents.infrastructure.git.repository import GitRepository

# In a folder of ours, files have the modes that they shall have.
_OWN_FOLDER: Final = {**UNARMED, "core.fileMode": "true", "core.symlinks": "true"}
# What git leaves in its folder while something is unfinished, and how a user ends that.
_UNFINISHED: Final = {
    "MERGE_HEAD": ("merge", "git merge --abort"),
    "rebase-merge": ("rebase", "git rebase --abort"),
    "rebase-apply": ("rebase", "git rebase --abort"),
    "CHERRY_PICK_HEAD": ("cherry-pick", "git cherry-pick --abort"),
    "REVERT_HEAD": ("revert", "git revert --abort"),
    "BISECT_START": ("bisect", "git bisect reset"),
}
# Who commits may be told by variables too.
_IDENTITY: Final = ("GIT_AUTHOR_", "GIT_COMMITTER_")
_WITHOUT: Final = "apply without `--commit` and `--branch`"


@dataclass(frozen=True, slots=True)
class UserCommit:
    """A commit that is made, and that no branch knows yet."""

    id: str
    parent: str
    #: What it changes, from the root of our tree.
    paths: tuple[str, ...]


class UserCommits:
    """Makes commits of exactly the files of one prospect, on top of the user's HEAD.

    Files with uncommitted edits of the user's own are refused: they would be committed too.
    It holds no state; git's own locks order those who commit at the same moment.
    """

    def __init__(self, repository: GitRepository) -> None:
        self._repository = repository
        self._root = repository.root

    # -- asking ----------------------------------------------------------------------------

    def check(self, prospect: Prospect, *, branch: str | None = None) -> None:
        """Refuse what would fail later, and a commit that would hold more than the plan's."""
        self._head()
        self._check_identity()
        if branch is None:
            self._check_finished()
            self._check_index()
        else:
            self._check_branch(branch)
        prefix = self._prefix()
        ours = {prefix + change.path for change in prospect.changes}
        above = {folder for path in ours for folder in folders_of(path)}
        for path in self._edited():
            if path in ours | above or not ours.isdisjoint(folders_of(path)):
                raise PlanError(
                    f"{shown(path)} has edits of yours that are not committed",
                    code="CA4108",
                    facts={"path": repr(path)},
                    hint=f"Commit or stash them first, or {_WITHOUT}",
                )

    def _head(self) -> str:
        head = self._asked("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if head:
            return head
        inside = self._asked("rev-parse", "--is-inside-work-tree") == "true"
        what = "has no commit that this one could follow" if inside else "is no git repository"
        raise PlanError(
            f"`{self._root}` {what}",
            code="CA4108",
            facts={"root": self._root},
            hint=f"{'Make a first commit' if inside else 'Run `git init`'}, or {_WITHOUT}",
        )

    def _check_identity(self) -> None:
        for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            if not self._asked("var", name):
                raise SetupError(
                    "Git does not know who you are, and a commit names its author",
                    code="CA5101",
                    hint="Run `git config --global user.name NAME`"
                    " and `git config --global user.email ADDRESS`",
                )

    def _check_finished(self) -> None:
        """Refuse while git is in the middle of something, of which our commit would be no part."""
        asked = [word for name in _UNFINISHED for word in ("--git-path", name)]
        places = os.fsdecode(self._git("rev-parse", *asked)).splitlines()
        for place, (what, command) in zip(places, _UNFINISHED.values(), strict=True):
            if os.path.lexists(self._root / place):
                raise PlanError(
                    f"Git is in the middle of a {what}; a commit would get into it",
                    code="CA4112",
                    facts={"unfinished": what, "found": place},
                    hint=f"Finish it, or run `{command}` to give it up, or {_WITHOUT}",
                )

    def _check_index(self) -> None:
        # Git answers from the root of our tree, or with an absolute path.
        lock = self._root / self._asked("rev-parse", "--git-path", "index.lock")
        if os.path.lexists(lock):
            raise PlanError(
                "Another git process works on the index; nothing was changed",
                code="CA4108",
                facts={"lock": lock},
                hint="Try again when it has finished; if none runs, remove the lock",
            )

    def _check_branch(self, name: str) -> None:
        # Git would read `@{-1}` as the name of another branch.
        if not name or self._asked("check-ref-format", "--branch", name) != name:
            raise RequestError(f"`--branch` must be a name that git allows, got {name!r}")
        if self._asked("rev-parse", "--verify", "--quiet", f"refs/heads/{name}"):
            raise PlanError(
                f"The branch `{name}` is there already",
                code="CA4108",
                facts={"branch": name},
                hint=f"Choose another name, or run `{shlex.join(['git', 'branch', '-D', name])}`",
            )

    def _edited(self) -> list[str]:
        return sorted(path for _, path in self._status())

    def _status(self, env: Mapping[str, str] | None = None) -> list[tuple[bytes, str]]:
        """Return what differs from HEAD: two letters, for the index and for the folder."""
        status = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
        lines = self._git(*status, env=env).split(b"\0")[:-1]
        return [(line[:2], os.fsdecode(line[3:]).rstrip("/")) for line in lines]

    def _prefix(self) -> str:
        """Return where our tree lies in the user's repository; it need not be its top."""
        return os.fsdecode(self._git("rev-parse", "--show-prefix").removesuffix(b"\n"))

    # -- making ----------------------------------------------------------------------------

    def make(self, prospect: Prospect, message: str) -> UserCommit:
        """Make a commit of these files on top of HEAD; no branch, file or index knows of it."""
        head = self._head()
        with tempfile.TemporaryDirectory(dir=self._repository.home, prefix="commit-") as folder:
            tree = self._tree(Path(folder), head, prospect)
        text = os.fsencode(message)
        said = self._git("commit-tree", tree, "-p", head, "-F", "-", stdin=text)
        paths = tuple(change.path for change in prospect.changes)
        return UserCommit(said.decode().strip(), head, paths)

    def branch(self, name: str, commit: UserCommit) -> None:
        """Give a commit a new branch; files, index and HEAD stay."""
        # Without an old value: it is refused if somebody made the branch meanwhile.
        self._git("update-ref", f"refs/heads/{name}", commit.id, "")

    def commit(self, commit: UserCommit) -> None:
        """Move HEAD on to a commit whose files are in place; index and HEAD go together."""
        try:
            # First the index, which others may hold; what it was of these files is HEAD's.
            self._set_index(commit.id, commit.paths)
            try:
                self._git(
                    "update-ref", "-m", "cleveragents apply", "HEAD", commit.id, commit.parent
                )
            except BaseException:
                self._set_index(commit.parent, commit.paths)
                raise
        except SandboxError as error:
            error.facts["kept"] = "the files are applied, index and HEAD are as they were"
            error.hint = "Apply with `--commit` again, or commit the files yourself"
            raise

    def left_over(self, commit_id: str) -> UserCommit | None:
        """Return a commit that HEAD was to move on to and did not, if it still fits all files."""
        parent = self._asked("rev-parse", "--verify", "--quiet", f"{commit_id}^")
        if not parent or parent != self._head():
            return None
        prefix = self._prefix()
        listed = self._git(
            "diff-tree", "-r", "-z", "--no-renames", "--name-only", parent, commit_id
        )
        paths = tuple(os.fsdecode(one).removeprefix(prefix) for one in listed.split(b"\0")[:-1])
        commit = UserCommit(commit_id, parent, paths)
        with tempfile.TemporaryDirectory(dir=self._repository.home, prefix="commit-") as folder:
            own = {"GIT_INDEX_FILE": f"{folder}/index"}
            self._git("read-tree", commit_id, env=own)
            found = self._status(own)
        told = {path for state, path in found if state[1:] != b" "}  # not so in the folder
        return commit if told.isdisjoint(prefix + path for path in paths) else None

    def _set_index(self, commit_id: str, paths: Iterable[str]) -> None:
        """Make the index of some files that of a commit."""
        listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
        # A path is a path, whatever characters it has.
        literal = {"GIT_LITERAL_PATHSPECS": "1"}
        self._git("reset", "--quiet", *listed, commit_id, stdin=_names(paths), env=literal)

    def _tree(self, folder: Path, head: str, prospect: Prospect) -> str:
        """Return the tree of HEAD with these files, as the user's repository keeps them."""
        files, prefix = folder / "files", self._prefix()
        below = files / prefix
        below.mkdir(parents=True)
        made = [change.path for change in prospect.changes if change.new is not None]
        self._write_files(prospect.after, made, folder, below)
        index = {
            "GIT_DIR": os.fsdecode(self._git("rev-parse", "--absolute-git-dir")[:-1]),
            "GIT_WORK_TREE": os.fspath(files),
            "GIT_INDEX_FILE": f"{folder}/index",
        }
        own = {**index, **configured(_OWN_FOLDER)}
        self._git("read-tree", head, env=own)
        gone = [change.path for change in prospect.changes if change.new is None]
        for verb, paths in (("--force-remove", gone), ("--add", made)):
            names = _names(prefix + path for path in paths)
            self._git("update-index", verb, "-z", "--stdin", stdin=names, env=own, folder=files)
        return self._git("write-tree", env=own).decode().strip()

    def _write_files(self, commit: str, paths: list[str], folder: Path, to: Path) -> None:
        """Write files of ours into a folder, and with them what says how git converts them."""
        listed = {**dict.fromkeys(paths), **dict.fromkeys(self._attributes(commit))}
        ours = {"GIT_INDEX_FILE": f"{folder}/ours", "GIT_WORK_TREE": os.fspath(to)}
        self._repository.git("read-tree", commit, env=ours)
        write = ("checkout-index", "-z", "--stdin")
        self._repository.git(*write, stdin=_names(listed), env=ours)

    def _attributes(self, commit: str) -> list[str]:
        files = self._repository.files(commit)
        return [path for path in files if path.rpartition("/")[2] == ".gitattributes"]

    # -- git -------------------------------------------------------------------------------

    def _asked(self, *arguments: str) -> str:
        """Return the first line of an answer; nothing when git has none."""
        said = self._git(*arguments, fine=(0, 1, 128))
        return os.fsdecode(said.partition(b"\n")[0])

    def _git(
        self,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
        fine: tuple[int, ...] = (0,),
    ) -> bytes:
        who = {name: value for name, value in os.environ.items() if name.startswith(_IDENTITY)}
        environment = {
            **foreign_environment(),
            **who,
            **configured(UNARMED),
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
            **(env or {}),
        }
        where = folder or self._root
        return run_git(arguments, environment, stdin=stdin, folder=where, fine=fine).stdout


def _names(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
