"""What `cleveragents fix` costs, against the same fixers run one after the other.

The stand-ins take a known time and then edit files of their own, so what is measured is ours:
sandboxes, merges, journal, and how much of the work is really done at once. One kind waits, as
on a machine with a core for each; the other computes, and shares the cores that there are.

By hand a person runs the tests before, then a fixer, the tests, the next fixer, and so on: only
so it is known which of them breaks something. Who does without runs the tests before and after.

The same is measured on two real packages, unpacked from their sources and made untidy, with the
fixers that are found there and a part of their own tests; without an index these are left out.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
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

#: Packages that are set up for fixers, each with a part of its tests.
PACKAGES: Final = {"attrs==25.3.0": "tests/test_cmp.py", "packaging==25.0": "tests/test_tags.py"}
_UNTIDY: Final = "\n\ndef  _untidy( one,two ) :\n    return  [ one ,two ]\n"

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
        # A fixer finds nothing to do in what it made itself.
        edit = f"for file in {files}; do grep -q {name} $file || echo {name} >> $file; done"
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


def unpacked(requirement: str, home: Path) -> Path | None:
    """Return the sources of a package, made untidy; None where no index gives them."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    got = subprocess.run([*pip, "-d", home, requirement], capture_output=True, check=False)
    archives = list(home.glob("*.tar.gz"))
    if got.returncode or not archives:
        return None
    with tarfile.open(archives[0]) as archive:
        archive.extractall(home, filter="data")
    (root,) = (path for path in home.iterdir() if path.is_dir())
    # Hooks need programs of their own; the tables of the project name what is installed here.
    (root / ".pre-commit-config.yaml").unlink(missing_ok=True)
    with (root / "pyproject.toml").open("a", encoding="utf-8") as settings:
        settings.write('\n[tool.ruff.format]\nquote-style = "double"\n')
    for path in root.glob("src/**/*.py"):
        path.write_text(path.read_text(encoding="utf-8") + _UNTIDY, encoding="utf-8")
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def of_package(requirement: str, tests: str) -> dict[str, float] | None:
    """Return ours as a share of both ways by hand, for one package."""
    check = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    ours = [sys.executable, "-m", "cleveragents", "fix"]
    best = dict.fromkeys(("ours", "check each", "check once"), float("inf"))
    with tempfile.TemporaryDirectory(prefix="bench-fix-", ignore_cleanup_errors=True) as at:
        pristine = unpacked(requirement, Path(at))
        if pristine is None:
            return None
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        more = {"PATH": path, "PYTHONPATH": "src", "XDG_STATE_HOME": f"{at}/state"}
        env = {**os.environ, **more}
        found = run([*ours, "--dry-run", "--no-check", "--json"], pristine, env)
        told = [json.loads(line) for line in found.splitlines()]
        fixers = [one["argv"] for one in told if one["kind"] == "found" and not one["why_not"]]
        each = [check, *(command for fixer in fixers for command in (fixer, check))]
        commands = {
            "ours": [[*ours, "--yes", "--check", shlex.join(check)]],
            "check each": each,
            "check once": [check, *fixers, check],
        }
        if not fixers:
            return None
        shutil.rmtree(pristine / ".cleveragents")
        for number in range(ROUNDS):
            for name, these in commands.items():
                root = Path(at) / f"{name}-{number}"
                shutil.copytree(pristine, root, symlinks=True)
                started = time.perf_counter()
                for command in these:
                    run(command, root, env)
                best[name] = min(best[name], time.perf_counter() - started)
    told_s = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in best.items())
    print(f"{requirement}, {len(fixers)} fixers: {told_s}")
    return {name: best["ours"] / seconds for name, seconds in best.items()}


def run(command: list[str], root: Path, env: dict[str, str]) -> str:
    """Run a command and return what it printed; it must go well."""
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)
    # A linter tells by 1 that something is left which it cannot fix.
    if done.returncode not in {0, 1}:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


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
    for requirement, tests in PACKAGES.items():
        shares = of_package(requirement, tests)
        if shares is None:
            print(f"{requirement}: left out: its sources or its fixers are not here")
            continue
        goals.at_most(f"{requirement}: ours / by hand, check each", shares["check each"], 1.0)
        print(f"         {requirement}: ours / by hand, check once {shares['check once']:25.2f}")
    goals.finish()


if __name__ == "__main__":
    main()
