"""Cases for the context benchmark: a task in words, the commit before it, the files it changed."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, cast

from cleveragents.strategies.file_kinds import worth

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FILES_MAX: Final = 5
_TITLE_WORDS_MIN: Final = 4
#: Commits that say what happened, not what was wanted.
_CHORES: Final = re.compile(r"^\W*(bump|merge|prepare|release|revert|version)\b", re.IGNORECASE)
_TRAILER: Final = re.compile(
    r"^(co-authored-by|signed-off-by|change-id|reviewed-by):.*$", re.IGNORECASE | re.MULTILINE
)
_RECORD: Final = "\x1e"


@dataclass(frozen=True, slots=True)
class Case:
    """A task, the tree to search, and the files that the right answer holds."""

    repository: str
    parent: str
    task: str
    files: frozenset[str]


def cases_in(file: Path) -> Iterator[Case]:
    """Yield the cases of a file with one JSON object per line."""
    for line in file.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        yield Case(one["repo"], one["parent_commit"], one["query"], frozenset(one["files"]))


def cases_from(git_dir: Path, count: int) -> Iterator[Case]:
    """Yield the newest commits that changed one to five files of code and say why."""
    name = git_dir.resolve().parent.name if git_dir.name == ".git" else git_dir.name
    form = f"--format={_RECORD}%H%n%P%n%B%x1f"
    log = _git(
        git_dir, "log", "--no-merges", "--diff-filter=M", "--name-only", "--no-renames", form
    )
    for record in log.split(_RECORD)[1:]:
        head, _, names = record.partition("\x1f")
        _, parent, message = head.split("\n", 2)
        files = [name for name in names.split("\n") if name]
        code = frozenset(name for name in files if worth(name) == 1.0)
        if not parent or not 1 <= len(code) <= _FILES_MAX:
            continue
        task = _without_names(_TRAILER.sub("", message).strip(), files)
        if _CHORES.match(task) or len(task.split("\n")[0].split()) < _TITLE_WORDS_MIN:
            continue
        yield Case(name, parent, task, code)
        count -= 1
        if count == 0:
            return


def _without_names(message: str, files: list[str]) -> str:
    """Take out what would give the answer away."""
    for file in sorted(files, key=len, reverse=True):
        for name in (file, file.rpartition("/")[2]):
            message = message.replace(name, "")
    return message


def git_dir_of(repository: str, folder: Path) -> Path:
    """Return where a repository lies in a folder of clones."""
    owner, _, name = repository.partition("/")
    for place in (f"{owner}+{name}/repo", f"{owner}+{name}", f"{owner}/{name}", name):
        for git_dir in (folder / place, folder / place / ".git", folder / f"{place}.git"):
            if (git_dir / "HEAD").is_file():
                return git_dir
    raise SystemExit(f"No clone of {repository} in {folder}")


class Checkout:
    """A folder that holds the tree of one commit after another; only differences are written."""

    def __init__(self, git_dir: Path, folder: Path) -> None:
        self.root = folder
        self._git_dir = git_dir.resolve()
        self._tree: dict[str, str] = {}
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        objects = _git(self._git_dir, "rev-parse", "--git-path", "objects").strip()
        alternates = folder / ".git/objects/info/alternates"
        alternates.write_text(f"{self._git_dir / objects}\n", encoding="utf-8")

    def move_to(self, commit: str) -> None:
        """Write the files of a commit; those that the clone does not hold are left out."""
        tree = dict(_entries(_git(self._git_dir, "ls-tree", "-r", "-z", commit)))
        for path in self._tree:
            if path not in tree:
                (self.root / path).unlink(missing_ok=True)
                self._tidy(path)
        changed = {path: blob for path, blob in tree.items() if self._tree.get(path) != blob}
        for path, content in self._contents(changed):
            file = self.root / path
            with suppress(OSError):  # a name that this system does not allow
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        (self.root / ".git/HEAD").write_text(f"{commit}\n", encoding="utf-8")
        self._tree = tree

    def _tidy(self, path: str) -> None:
        """Remove the folders that a file leaves empty."""
        with suppress(OSError):
            for folder in (self.root / path).parents:
                if folder == self.root:
                    return
                folder.rmdir()

    def _contents(self, blobs: dict[str, str]) -> Iterator[tuple[str, bytes]]:
        command = ["git", "--git-dir", str(self._git_dir), "cat-file", "--batch"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
            for path, blob in blobs.items():
                stdin.write(f"{blob}\n".encode())
                stdin.flush()
                header = stdout.readline().split()
                if header[-1] != b"missing":
                    yield path, stdout.read(int(header[2]))
                    stdout.read(1)
            stdin.close()


def _entries(listing: str) -> Iterator[tuple[str, str]]:
    for entry in listing.split("\0"):
        head, _, path = entry.partition("\t")
        if head.startswith("100"):  # neither links nor submodules
            yield path, head.split()[2]


def _git(git_dir: Path, *arguments: str) -> str:
    command = ["git", "--git-dir", str(git_dir), *arguments]
    done = subprocess.run(command, check=True, capture_output=True)
    return os.fsdecode(done.stdout)
