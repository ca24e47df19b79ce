"""Sixteen actors edit shared files at once: edits lost, edits made twice, and the time of a merge.

Ours is measured against what people do without it, in the same run and on the same files:
writing back whole files (edits vanish), comparing versions and doing the work again (edits are paid
for several times), and `git merge` of one branch after the other in a clone (the time of a merge).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from _yardstick import Goals
from cleveragents.infrastructure.changes.plan_trees import PlanTrees
from cleveragents.infrastructure.git.repository import GitRepository, Write
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.store import Store
from cleveragents.testing import run_together

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ACTORS: Final = 16
EDITS: Final = 20
SHARED: Final = 5
FILES: Final = 2_000
ROUNDS: Final = 3
THINK_S: Final = 0.002
_LINES: Final = 3 * ACTORS * EDITS
_REGULAR: Final = 0o100644


def path_of(number: int) -> str:
    """Return where a file of the tree is."""
    return f"src/p{number % 20}/q{number % 7}/f{number}.py"


def mark(actor: int, step: int, round_: int = 0) -> str:
    """Return what an edit writes into its line; in each round, what no round wrote before."""
    return f"edit {step} of actor {actor} in round {round_}\n"


def edited(text: str, actor: int, step: int, round_: int = 0) -> str:
    """Make one edit, in a line that nobody else touches."""
    lines = text.splitlines(keepends=True)
    lines[3 * (actor * EDITS + step)] = mark(actor, step, round_)
    return "".join(lines)


def work_of(actor: int, tree: Path, round_: int) -> dict[str, str]:
    """Return what an actor makes of the shared files when it works on its own copy of them."""
    files = {path_of(n): (tree / path_of(n)).read_text() for n in range(SHARED)}
    for step in range(EDITS):
        path = path_of(step % SHARED)
        files[path] = edited(files[path], actor, step, round_)
    return files


def kept(texts: Sequence[str], round_: int = 0) -> int:
    """Count the edits that survived."""
    whole = "".join(texts)
    marks = (mark(actor, step, round_) for actor in range(ACTORS) for step in range(EDITS))
    return sum(one in whole for one in marks)


# -- without a merge -----------------------------------------------------------------------


class Whole:
    """Shared files that are read, thought about, and written back as a whole."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lock = threading.Lock()  # guards: texts, versions, attempts
        self.texts = list(texts)
        self.versions = [0] * len(texts)
        self.attempts = 0
        self._nothing = threading.Event()

    def write_blindly(self, actor: int) -> None:
        """Write back whatever has happened meanwhile."""
        for step in range(EDITS):
            file = step % SHARED
            with self._lock:
                text = self.texts[file]
            self._nothing.wait(THINK_S)
            with self._lock:
                self.texts[file] = edited(text, actor, step)

    def write_or_redo(self, actor: int) -> None:
        """Write back only what is still based on the file, else work again."""
        for step in range(EDITS):
            while not self._wrote(actor, step):
                pass

    def _wrote(self, actor: int, step: int) -> bool:
        file = step % SHARED
        with self._lock:
            text, version = self.texts[file], self.versions[file]
            self.attempts += 1
        self._nothing.wait(THINK_S)
        with self._lock:
            if self.versions[file] != version:
                return False
            self.texts[file] = edited(text, actor, step)
            self.versions[file] += 1
            return True


def at_once(work: Callable[[int], object]) -> None:
    """Let all actors work at the same time."""
    run_together([partial(work, actor) for actor in range(ACTORS)])


# -- by git --------------------------------------------------------------------------------


class Clone:
    """A clone in which each actor has a branch."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._git("init", "--quiet", "--initial-branch=main")
        self._git("add", "--all")
        self._git("commit", "--quiet", "-m", "start")
        self._start = self._git("rev-parse", "main").strip()

    def merge_all(self, round_: int) -> float:
        """Merge every branch, one after the other; return the seconds of that."""
        for actor in range(ACTORS):
            self._git("checkout", "--quiet", "-B", f"actor-{actor}", self._start)
            for path, text in work_of(actor, self.tree, round_).items():
                (self.tree / path).write_text(text)
            self._git("commit", "--quiet", "--all", "-m", "work")
        self._git("checkout", "--quiet", "-B", "main", self._start)
        started = time.perf_counter()
        for actor in range(ACTORS):
            self._git("merge", "--quiet", "--no-edit", "--no-stat", f"actor-{actor}")
        return time.perf_counter() - started

    def _git(self, *arguments: str) -> str:
        who = {
            f"GIT_{role}_{what}": "bench"
            for role in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
        return subprocess.run(
            ["git", *arguments],
            cwd=self.tree,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout


# -- ours ----------------------------------------------------------------------------------


class Ours:
    """A plan's tree, and the sealed changesets of all actors."""

    def __init__(self, tree: Path, store: Store) -> None:
        self._tree = tree
        self._repository = GitRepository(tree, tree / ".cleveragents")
        self._changesets = SqliteChangesetStore(store)
        self._trees = PlanTrees(store, self._repository)

    def merge_all(self, round_: int, *, together: bool) -> tuple[float, int, int]:
        """Merge what all actors sealed; return the seconds, the edits kept, and the attempts."""
        plan = f"plan-{round_}"
        start = self._trees.begin(plan).head
        sealed = []
        for actor in range(ACTORS):
            work = work_of(actor, self._tree, round_)
            writes = {path: Write(_REGULAR, text.encode()) for path, text in work.items()}
            changeset = self._changesets.start(plan, actor=str(actor))
            self._trees.seal(plan, changeset, start, self._repository.commit(start, writes))
            sealed.append(changeset)
        started = time.perf_counter()
        if together:
            at_once(lambda actor: self._trees.merge(sealed[actor]))
        else:
            for changeset in sealed:
                self._trees.merge(changeset)
        seconds = time.perf_counter() - started
        files = self._repository.files(self._trees.tree_of(plan).head)
        oids = [files[path_of(n)].oid for n in range(SHARED)]
        texts = [data.decode() for data in self._repository.read(oids)]
        return seconds, kept(texts, round_), len(self._trees.merges(plan))


def fill(tree: Path) -> None:
    """Make a tree of many files, some of which are shared."""
    for number in range(FILES):
        lines = _LINES if number < SHARED else 40
        place = tree / path_of(number)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(f"file {number} line {line}\n" for line in range(lines)))


def main() -> None:
    """Measure, print, and fail when a goal is missed."""
    goals = Goals()
    all_edits = ACTORS * EDITS
    with ExitStack() as stack:
        trees = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        for tree in trees:
            fill(tree)
        texts = [(trees[0] / path_of(n)).read_text() for n in range(SHARED)]
        clone = Clone(trees[0])
        store = stack.enter_context(Store(trees[1] / ".cleveragents" / "state.db"))
        ours = Ours(trees[1], store)
        git_s: list[float] = []
        together_s: list[float] = []
        alone_s: list[float] = []
        fewest, attempts = all_edits, 0.0
        for number in range(ROUNDS):
            git_s.append(clone.merge_all(number))
            for round_, seconds in ((2 * number, together_s), (2 * number + 1, alone_s)):
                spent, found, tries = ours.merge_all(round_, together=seconds is together_s)
                seconds.append(spent)
                fewest, attempts = min(fewest, found), max(attempts, tries / ACTORS)
    blind, redo = Whole(texts), Whole(texts)
    at_once(blind.write_blindly)
    at_once(redo.write_or_redo)
    git, together, alone = (1e3 * min(one) / ACTORS for one in (git_s, together_s, alone_s))
    print(f"{ACTORS} actors, {EDITS} edits each, {SHARED} shared files in a tree of {FILES:,}\n")
    print(f"  {'way':<40} {'lost':>7} {'attempts per edit':>18} {'ms per merge':>13}")
    lost = 1 - kept(blind.texts) / all_edits
    again = redo.attempts / all_edits
    print(f"  {'whole files, written blindly':<40} {lost:>7.1%} {1.0:>18.2f} {'-':>13}")
    missing = 1 - kept(redo.texts) / all_edits
    print(f"  {'whole files, compared and redone':<40} {missing:>7.1%} {again:>18.2f} {'-':>13}")
    print(f"  {'git merge, one branch after the other':<40} {0:>7.1%} {1.0:>18.2f} {git:>13.1f}")
    ours_lost = 1 - fewest / all_edits
    for way, spent in (("one after the other", alone), ("all at once", together)):
        print(f"  {f'ours, {way}':<40} {ours_lost:>7.1%} {attempts:>18.2f} {spent:>13.1f}")
    print()
    goals.exactly("edits lost by ours", all_edits - fewest, 0)
    goals.exactly("attempts per edit by ours", attempts, 1.0)
    goals.at_most("time per merge, one after the other / git merge", alone / git, 1.0)
    goals.at_most("time per merge, all at once / git merge", together / git, 1.0)
    goals.finish()


if __name__ == "__main__":
    main()
