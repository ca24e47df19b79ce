"""What `cleveragents fix` costs, against the same fixers run one after the other.

The stand-ins take a known time and then edit files of their own, so what is measured is ours:
sandboxes, merges, journal, and how much of the work is really done at once. One kind waits, as
on a machine with a core for each; the other computes, and shares the cores that there are.

By hand a person runs the tests before, then a fixer, the tests, the next fixer, and so on: only
so it is known which of them breaks something. Who does without runs the tests before and after.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from _yardstick import Goals

if TYPE_CHECKING:
    from collections.abc import Callable

FIXERS: Final = ("autoflake", "isort", "docformatter", "autopep8", "yapf", "black")
FILES: Final = 300
EDITS: Final = 20
FIXER_S: Final = 1.0
CHECK_S: Final = 0.5
ROUNDS: Final = 2

_WAIT: Final = "sleep {seconds}"
_COMPUTE: Final = (
    'python3 -c "import time; end = time.process_time() + {seconds}\n'
    'while time.process_time() < end: pass"'
)


def plant(home: Path, work: str) -> Path:
    """Make a repository of many files and the programs that it is configured for."""
    root, programs = home / "tree", home / "bin"
    root.mkdir(parents=True)
    programs.mkdir()
    for number in range(FILES):
        (root / f"module{number}.txt").write_text("start\n", encoding="utf-8")
    tables = "".join(f"[tool.{name}]\n" for name in (*FIXERS, "pytest.ini_options"))
    (root / "pyproject.toml").write_text(tables, encoding="utf-8")
    subprocess.run(["git", "init", "-q", root], check=True)
    scripts = {"pytest": work.format(seconds=CHECK_S)}
    for at, name in enumerate(FIXERS):
        files = " ".join(f"module{at * EDITS + number}.txt" for number in range(EDITS))
        edit = f"for file in {files}; do echo {name} >> $file; done"
        scripts[name] = f"{work.format(seconds=FIXER_S)}\n{edit}"
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    return root


def environment(home: Path) -> dict[str, str]:
    """Return what all contestants see: the stand-ins before all else."""
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "XDG_STATE_HOME": str(home / "state")}


def one_after_the_other(home: Path, root: Path, *, check_each: bool) -> None:
    """Do it by hand."""
    commands = ["pytest"]
    for name in FIXERS:
        commands += [name, "pytest"] if check_each else [name]
    commands += [] if check_each else ["pytest"]
    for command in commands:
        subprocess.run([command], cwd=root, env=environment(home), check=True)


def at_once(home: Path, root: Path) -> None:
    """Do it with the command that is installed, from its start to the apply."""
    command = [sys.executable, "-m", "cleveragents", "fix", "--yes"]
    done = subprocess.run(
        command, cwd=root, env=environment(home), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"`cleveragents fix` ended with {done.returncode}:\n{done.stderr}")


def edited(root: Path) -> int:
    """Count the edits that arrived."""
    return sum(
        path.read_text(encoding="utf-8").count("\n") - 1 for path in root.glob("module*.txt")
    )


def best_s(work: str) -> dict[str, float]:
    """Return the best time of each contestant, measured in turns, each on a tree of its own."""
    contestants: dict[str, Callable[[Path, Path], None]] = {
        "ours": at_once,
        "check each": lambda home, root: one_after_the_other(home, root, check_each=True),
        "check once": lambda home, root: one_after_the_other(home, root, check_each=False),
    }
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(ROUNDS):
        for name, run in contestants.items():
            with tempfile.TemporaryDirectory(prefix="bench-fix-", ignore_cleanup_errors=True) as at:
                root = plant(Path(at) / "home", work)
                started = time.perf_counter()
                run(root.parent, root)
                best[name] = min(best[name], time.perf_counter() - started)
                assert edited(root) == len(FIXERS) * EDITS, "an edit was lost"
    return best


def measured(kind: str, work: str) -> dict[str, float]:
    """Print the best times, and return ours as a share of each other one."""
    best = best_s(work)
    told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in best.items())
    print(f"{len(FIXERS)} fixers that {kind} for {FIXER_S:g} s: {told}")
    return {name: best["ours"] / seconds for name, seconds in best.items()}


def main() -> None:
    """Measure, print, and leave with 1 when a goal is missed."""
    goals = Goals()
    waiting = measured("wait", _WAIT)
    goals.at_most("wait: ours / by hand, check each", waiting["check each"], 0.75)
    goals.at_most("wait: ours / by hand, check once", waiting["check once"], 1.0)
    computing = measured("compute", _COMPUTE)
    goals.at_most("compute: ours / by hand, check each", computing["check each"], 1.0)
    # No goal: where nothing is idle, tests for each fixer cost more than tests for all at once.
    print(f"         compute: ours / by hand, check once {computing['check once']:33.2f}")
    goals.finish()


if __name__ == "__main__":
    main()
