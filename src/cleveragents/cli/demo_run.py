"""The run of the demo: the package's own commands in processes of their own, one of them killed.

What it reports is what the store says afterwards, and what lies on disk.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cleveragents.cli import demo_world as world
from cleveragents.cli.demo_books import books_of
from cleveragents.domain.errors import LimitError
from cleveragents.domain.money import Money

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cleveragents.cli.demo import Interrupt
    from cleveragents.cli.demo_books import Books

DIFF_LINES_SHOWN: Final = 18
_NODE_DONE: Final = "  ✓ total"


class Stopped(Exception):  # noqa: N818  # the user's wish is no error
    """The user wants no more of it."""


@dataclass
class DemoRun:
    """Plays the demo in a folder; one thread, and one process at a time."""

    root: Path
    actors: int
    talk: Callable[[str], None]
    interrupt: Interrupt
    checks: dict[str, bool] = field(default_factory=dict)

    def run(self) -> dict[str, Any]:
        """Play everything and return the report."""
        began = time.monotonic()
        world.make_repository(self.root, self.actors)
        before = world.tree_of(self.root)
        killed, stopped, end = self._play_plan()
        diff = self._review(end)
        self._apply_and_undo(end, before, diff)
        self.checks["verify: all books hold"] = self._command("verify") == 0
        return {
            "plan": end.plan_id,
            "actors": self.actors,
            "nodes": end.nodes,
            "at_once": end.most_at_once,
            "killed": {
                "done": killed.done,
                "to_merge": killed.to_merge,
                "cut_off": killed.cut_off,
            },
            "ran_again": end.again,
            "budget": str(stopped.limit),
            "spent_at_stop": str(stopped.spent),
            "calls_refused": end.errors["plan.budget"],
            "budget_raised": str(end.limit),
            "spent": str(end.spent),
            "spent_pico_usd": end.spent.pico,
            "errors": dict(sorted(end.errors.items())),
            "decisions": dict(sorted(end.decisions.items())),
            "editors": end.editors,
            "seconds": round(time.monotonic() - began, 1),
            "diff": diff.decode("utf-8", "replace"),
            "checks": self.checks,
        }

    def _play_plan(self) -> tuple[Books, Books, Books]:
        """Run, kill, resume; return the books at the kill, at the budget's stop, and at the end."""
        half = self.actors // 2
        self._command("run", "plan.yaml", kill_after=half)
        killed = self._books()
        self.talk(
            f"killed with SIGKILL: {killed.done} nodes were done,"
            f" {killed.to_merge} waited to be merged, {killed.cut_off} were cut off\n"
        )
        code = self._command("resume", killed.plan_id)
        stopped = end = self._books()
        if code == LimitError.exit_code:
            more = Money(2 * world.budget_of(self.actors).pico)
            self._command("resume", end.plan_id, "--budget", f"{more.usd:f}")
            end = self._books()
        self.checks |= {
            "the plan was killed in its middle": 0 < killed.done < end.nodes,
            f"{end.again} of {killed.done} finished nodes ran again": end.again == 0,
            f"{end.done} of {end.nodes} nodes are done": end.is_done,
            "no budget was exceeded": all(
                one.limit is not None and one.spent <= one.limit for one in (killed, stopped, end)
            ),
            "every error has a decision": end.errors.total() == end.decisions.total(),
        }
        return killed, stopped, end

    def _review(self, end: Books) -> bytes:
        """Show the diff, the beginning of it, and return all of it."""
        self.talk(f"$ cleveragents diff {end.plan_id}")
        with self._started("diff", end.plan_id, stderr=subprocess.DEVNULL) as process:
            diff, _ = process.communicate()
        lines = diff.decode("utf-8", "replace").splitlines()
        more = lines[DIFF_LINES_SHOWN:]
        for line in lines[:DIFF_LINES_SHOWN]:
            self.talk(line)
        self.talk(f"… {len(more)} more lines\n" if more else "")
        return diff

    def _apply_and_undo(self, end: Books, before: dict[str, bytes], diff: bytes) -> None:
        self._command("apply", end.plan_id)
        applied = world.tree_of(self.root)
        edits = world.edits_in(applied.get(world.SHARED, b"").decode(), self.actors)
        self._command("undo")
        self.checks |= {
            f"{edits} of {self.actors} edits of `{world.SHARED}` arrived": edits == self.actors,
            "every edit is in a changeset of its own": end.editors == self.actors,
            "git makes of the diff what apply made": self._by_git(before, diff) == applied,
            "undo gives every byte back": world.tree_of(self.root) == before,
        }

    def _by_git(self, before: dict[str, bytes], diff: bytes) -> dict[str, bytes]:
        """Return the tree that git makes of a diff, beside the repository."""
        copy = self.root.with_name("by-git")
        copy.mkdir()
        for name, content in before.items():
            (copy / name).write_bytes(content)
        world.git(copy, "init", "--quiet")
        world.git(copy, "apply", stdin=diff)
        made = world.tree_of(copy)
        shutil.rmtree(copy)
        return made

    def _books(self, shared: str = world.SHARED) -> Books:
        return books_of(self.root, shared)

    def _command(self, *words: str, kill_after: int | None = None) -> int:
        """Run a command of ours and show what it says; kill it after so many nodes."""
        self.talk(f"$ cleveragents {' '.join(words)}")
        with self._started(*words, stderr=subprocess.STDOUT) as process:
            done = 0
            for line in process.stdout or ():
                text = line.decode("utf-8", "replace").rstrip("\n")
                if not self.interrupt.is_asked:
                    self.talk(text)
                done += text.startswith(_NODE_DONE)
                if done == kill_after:
                    process.kill()
                    break
        self.talk("")
        return process.returncode

    @contextmanager
    def _started(self, *words: str, stderr: int) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command of ours; when the block ends, so has the command."""
        self._stop_if_asked()
        with subprocess.Popen(  # our own program, with our own words
            [sys.executable, "-m", "cleveragents", *words],
            cwd=self.root,
            # What a killed process leaves in its folder for temporary files goes with ours.
            env=world.environment() | {"TMPDIR": str(self.root.parent)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            # A Ctrl-C in the terminal comes to us alone, who pass it on once.
            start_new_session=True,
        ) as process:
            self.interrupt.pass_on_to(process)
            try:
                yield process
            except BaseException:
                process.kill()
                raise
        self._stop_if_asked()

    def _stop_if_asked(self) -> None:
        if self.interrupt.is_asked:
            raise Stopped
