"""How long the command needs to answer: CPU time of its start against a bare Python start."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from _yardstick import Goals

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS: Final = 15
RUNS: Final = 4
BARE: Final = (sys.executable, "-c", "pass")


def cpu_seconds(command: Sequence[str]) -> float:
    """Return the CPU time of a few runs of a command, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(RUNS):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main() -> None:
    """Measure `--help`, `--version` and the import, in turns with the bare start."""
    beside = Path(sys.executable).parent / "cleveragents"
    command = str(beside) if beside.exists() else shutil.which("cleveragents")
    if command is None:
        sys.exit("install the package first: pip install .")
    contestants = {
        "bare": BARE,
        "cleveragents --help": (command, "--help"),
        "cleveragents --version": (command, "--version"),
        "import cleveragents": (sys.executable, "-c", "import cleveragents"),
    }
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(ROUNDS):
        for name, arguments in contestants.items():
            best[name] = min(best[name], cpu_seconds(arguments))
    bare = best.pop("bare")
    print(f"CPU time, ratio to `python -c pass` ({bare / RUNS * 1000:.1f} ms)")
    goals = Goals()
    for name, seconds in best.items():
        goals.at_most(name, seconds / bare, 6.0)
    goals.finish()


if __name__ == "__main__":
    main()
