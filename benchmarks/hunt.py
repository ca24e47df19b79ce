"""What `cleveragents hunt` does on packages that it has never seen.

Each package is copied out of this environment into a repository of its own, as it is, and hunted
as a user would: by the command, in a process. A package cannot show how its users share its
objects, so `--all` takes every candidate. Each regression test that comes out of it must fail on
the unmodified code, in a process of its own: only then is the race there for others, too.

`--folder NAME=PATH` takes sources from elsewhere, such as the folder of an unpacked archive.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from _yardstick import Goals

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The package to import, and the distribution that brings it.
PACKAGES: Final = {
    "apscheduler": "APScheduler",
    "blinker": "blinker",
    "cachetools": "cachetools",
    "circuitbreaker": "circuitbreaker",
    "diskcache": "diskcache",
    "dogpile": "dogpile.cache",
    "expiringdict": "expiringdict",
    "limits": "limits",
    "prometheus_client": "prometheus_client",
    "purgatory": "purgatory",
    "pybreaker": "pybreaker",
    "ratelimit": "ratelimit",
    "tenacity": "tenacity",
    "urllib3": "urllib3",
}
SECONDS: Final = 10
MINUTES_MAX: Final = 15.0
_TESTS: Final = "races"
_HEADINGS: Final = (
    "package", "version", "modules", "candidates", "proven", "today", "seconds", "tests",
    "not proven",
)  # fmt: skip


@dataclass(slots=True)
class Hunted:
    """What came of one package."""

    name: str
    version: str
    seconds: float = 0.0
    #: Why there is no report: it crashed, or took too long.
    lost: str = ""
    report: dict[str, Any] = field(default_factory=dict)
    #: The regression tests, and whether each fails on the unmodified code.
    tests: dict[str, bool] = field(default_factory=dict)

    @property
    def bugs(self) -> list[dict[str, Any]]:
        """Return what was proven."""
        return list(self.report.get("bugs", ()))

    def row(self) -> tuple[str, ...]:
        """Return the line of the table."""
        if self.lost:
            return (self.name, self.version, *["-"] * 4, f"{self.seconds:.0f}", "-", self.lost)
        others = Counter(one["verdict"] for one in self.report["suspicions"])
        others["silent"] = len(self.report["silent"])
        return (
            self.name,
            self.version,
            str(self.report["modules"]),
            str(self.report["candidates"]),
            str(len(self.bugs)),
            str(sum(one["strikes"] == "today" for one in self.bugs)),
            f"{self.seconds:.0f}",
            f"{sum(self.tests.values())} of {len(self.tests)}",
            ", ".join(f"{count} {verdict}" for verdict, count in others.most_common() if count),
        )


def plant(source: Path, root: Path) -> None:
    """Make a repository that holds one package or module."""
    root.mkdir(parents=True)
    if source.is_dir():
        unwanted = shutil.ignore_patterns("__pycache__", ".git")
        shutil.copytree(source, root / source.name, ignore=unwanted)
    else:
        shutil.copy(source, root)
    subprocess.run(["git", "init", "-q", root], check=True)


def hunted(name: str, source: Path, home: Path, options: argparse.Namespace) -> Hunted:
    """Hunt one package, then run each test that this gave."""
    found = Hunted(name, _version(name))
    root = home / name
    plant(source, root)
    env = {**os.environ, "XDG_STATE_HOME": str(home / "state"), "PYTHONPATH": str(root)}
    hunt = [sys.executable, "-m", "cleveragents", "hunt", "--all", "--json", "--tests", _TESTS]
    hunt += ["--seconds", f"{options.seconds:g}", "--at-once", "2"]
    started_s = time.perf_counter()
    try:
        done = _run(hunt, root, env, options.minutes * 60)
    except subprocess.TimeoutExpired:
        found.lost = f"not done after {options.minutes:g} minutes"
        return found
    finally:
        found.seconds = time.perf_counter() - started_s
    # 1 says that something was found.
    if done.returncode not in {0, 1} or not done.stdout:
        found.lost = f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
        return found
    found.report = json.loads(done.stdout)
    found.tests = {
        path.name: reproduces(path, root, env) for path in sorted((root / _TESTS).glob("test_*.py"))
    }
    return found


def reproduces(test: Path, root: Path, env: dict[str, str]) -> bool:
    """Say whether a regression test fails because it saw the race, and not for another reason."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    done = _run(pytest, root, env, 120)
    seen = "AssertionError" in done.stdout and "Nothing can be said" not in done.stdout
    return done.returncode == 1 and seen


def _run(
    command: Sequence[str], root: Path, env: dict[str, str], limit_s: float
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=root, env=env, capture_output=True, text=True, check=False, timeout=limit_s
    )


def _version(name: str) -> str:
    try:
        return version(PACKAGES.get(name, name))
    except PackageNotFoundError:
        return "-"


def _installed(name: str) -> Path | None:
    """Return where a package or module lies; it is not imported."""
    spec = find_spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return None if spec.origin is None else Path(spec.origin)


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("names", nargs="*", help="packages of this environment (default: all)")
    parser.add_argument("--folder", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each candidate")
    parser.add_argument("--minutes", type=float, default=MINUTES_MAX, help="for each package")
    parser.add_argument("--keep", metavar="FOLDER", help="leave reports and tests there")
    return parser.parse_args()


def _sources(options: argparse.Namespace) -> dict[str, Path]:
    """Return what to hunt by name; what is not installed is told and left out."""
    sources = {name: Path(path) for name, _, path in (x.partition("=") for x in options.folder)}
    for name in options.names or (() if sources else PACKAGES):
        place = _installed(name)
        if place is None:
            print(f"{name}: left out: it is not installed")
        else:
            sources[name] = place
    return sources


def _all(options: argparse.Namespace) -> list[Hunted]:
    """Hunt one package after the other: each takes all cores."""
    done = []
    with tempfile.TemporaryDirectory(prefix="bench-hunt-", ignore_cleanup_errors=True) as at:
        for name, source in _sources(options).items():
            one = hunted(name, source, Path(at), options)
            done.append(one)
            print(" ".join(one.row()), file=sys.stderr, flush=True)
            if options.keep and not one.lost:
                there = Path(options.keep) / name
                there.mkdir(parents=True, exist_ok=True)
                (there / "report.json").write_text(json.dumps(one.report, indent=1), "utf-8")
                for test in (Path(at) / name / _TESTS).glob("test_*.py"):
                    shutil.copy(test, there)
    return done


def main() -> None:
    """Hunt, print, and leave with 1 when a goal is missed."""
    options = _options()
    done = _all(options)
    _table([_HEADINGS, *(one.row() for one in done)])
    for one in done:
        for bug in one.bugs:
            print(f"\n{bug['name']}  [{bug['verdict']}, strikes: {bug['strikes']}]")
            print(f"  {bug['trial']['subject']}: {bug['reason']}")
    print()
    goals = Goals()
    tests = [seen for one in done for seen in one.tests.values()]
    goals.exactly("hunts that crashed or took too long", sum(bool(one.lost) for one in done), 0)
    goals.exactly("regression tests that show the race", sum(tests), len(tests))
    goals.exactly("a regression test for each bug", len(tests), sum(len(o.bugs) for o in done))
    goals.finish()


if __name__ == "__main__":
    main()
