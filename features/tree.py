"""A user's files, a workspace on them, and the command line as the user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from cleveragents.workspace import Workspace, WorkspaceOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAN = "p-7f3a"

# An apply in a process that is killed after its first file was replaced.
DYING = """
import os, signal, sys
from pathlib import Path
from cleveragents.infrastructure.apply.files import Files
from cleveragents.workspace import Workspace

def die(point):
    if point == "mid-flip":
        os.kill(os.getpid(), signal.SIGKILL)

with Workspace(Path(sys.argv[1])) as workspace:
    workspace.changes.applies._engine._files = Files(die)
    workspace.changes.applies.apply(sys.argv[2])
"""


class Tree:
    """One folder with files; the last command's answer stays until the next one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = Workspace(root, options=WorkspaceOptions(sandbox_kind="copy"))
        self.answer: subprocess.CompletedProcess[str] | None = None
        self.before: dict[str, bytes] = {}

    def write(self, path: str, lines: list[str]) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(f"{line}\n" for line in lines))

    def lines(self, path: str) -> list[str]:
        return (self.root / path).read_text().splitlines()

    def replace(self, path: str, number: int, line: str) -> None:
        lines = self.lines(path)
        lines[number - 1] = line
        self.write(path, lines)

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".cleveragents" not in path.parts
        }

    def act(self, actor: str, *edits: tuple[str, Callable[[list[str]], list[str]]]) -> str:
        """Let an actor edit files in a sandbox of its own; return its changeset, not yet merged."""
        with self.workspace.attempt(PLAN, f"step-{actor}", actor=actor) as attempt:
            for path, edit in edits:
                there = path in attempt.files.walk()
                lines = attempt.files.read(path).decode().splitlines() if there else []
                data = "".join(f"{line}\n" for line in edit(lines))
                attempt.files.write(path, data.encode())
        return attempt.changeset_id

    def run(self, *arguments: str) -> None:
        """Run the command line in the folder."""
        self.before = self.files()
        self.answer = subprocess.run(
            [sys.executable, "-m", "cleveragents", *arguments],
            cwd=self.root,
            env={**os.environ, "XDG_STATE_HOME": str(self.root / ".cleveragents" / "state")},
            capture_output=True,
            check=False,
            text=True,
            timeout=60,
        )

    def records(self, *arguments: str) -> list[dict]:
        self.run(*arguments, "--json")
        return [json.loads(line) for line in self.answer.stdout.splitlines()]

    def die_while_applying(self) -> None:
        self.before = self.files()
        done = subprocess.run(
            [sys.executable, "-c", DYING, str(self.root), PLAN],
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr

    def close(self) -> None:
        self.workspace.close()


def line_replaced(number: int, line: str) -> Callable[[list[str]], list[str]]:
    """Return the edit that puts a text into one line."""
    return lambda lines: [*lines[: number - 1], line, *lines[number:]]


def both_act(tree: Tree, *works: tuple[str, str, int]) -> None:
    """Let actors start from the same files, and merge what they wrote in their order."""
    with ExitStack() as open_attempts:
        attempts = []
        for actor, line, number in works:
            attempt = open_attempts.enter_context(
                tree.workspace.attempt(PLAN, f"step-{actor}", actor=actor)
            )
            lines = attempt.files.read("app.txt").decode().splitlines()
            data = "".join(f"{one}\n" for one in line_replaced(number, line)(lines))
            attempt.files.write("app.txt", data.encode())
            attempts.append(attempt)
    for attempt in attempts:
        tree.workspace.merge(attempt.changeset_id)
