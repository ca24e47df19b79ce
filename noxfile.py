"""Everything that must hold, run by `nox`: lint, types, tests with coverage, and proofs."""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "types", "tests", "proofs", "free_threaded"]
nox.options.reuse_existing_virtualenvs = True

PYPROJECT = nox.project.load_toml("pyproject.toml")
# Shows where every thread stands, and ends: a run that waits for ever tells nothing.
A_TEST_THAT_HANGS = ("--timeout=180", "--timeout-method=thread")
FREE_THREADED = next(filter(shutil.which, ("python3.14t", "python3.13t")), None)


def group(name: str) -> list[str]:
    """Return the pinned packages of a dependency group."""
    return list(nox.project.dependency_groups(PYPROJECT, name))


@nox.session
def lint(session: nox.Session) -> None:
    """Check the lint rules and the format."""
    session.install(*group("lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types, strictly."""
    session.install(*group("types"), "nox", "genai-prices>=0.2.1", "pathspec>=1.0", "PyYAML>=6")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """Run pytest, behave and Robot on the built wheel, and demand their coverage together."""
    session.install(*group("tests"), ".")
    session.run("coverage", "erase")
    pytest = ("pytest", "-q", "-n", "2", *A_TEST_THAT_HANGS)
    traced = ("-m", "not long", "tests/unit", "tests/tidy")
    session.run("coverage", "run", "-m", *pytest, *traced, *session.posargs)
    # Races, kills and journeys show nothing that is not covered; a tracer would change their time.
    untraced = ("-m", "long", "tests/unit", "tests/stress", "tests/crash")
    session.run(*pytest, *untraced, *session.posargs)
    session.run("coverage", "run", "-m", "behave", "--format=progress", "--no-summary")
    session.run(
        "coverage", "run", "-m", "robot", "--outputdir=results", "--console=dotted", "robot"
    )
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session
def proofs(session: nox.Session) -> None:
    """Explore the interleavings of every pair of calls; the planted bugs must be found."""
    session.install(*group("proofs"), ".")
    pytest = ("pytest", "-q", "-n", "2", *A_TEST_THAT_HANGS)
    session.run("frontrun", *pytest, "tests/proofs", *session.posargs)


@nox.session(python=FREE_THREADED or False)
def free_threaded(session: nox.Session) -> None:
    """Run the stress tests without an interpreter lock, where such an interpreter is found."""
    if FREE_THREADED is None:
        session.skip("no python3.14t or python3.13t on this machine")
    session.install("pytest", "hypothesis", ".")
    session.run("pytest", "-q", "tests/stress")


@nox.session
def crash(session: nox.Session) -> None:
    """Kill a thousand processes under load and check that nothing acknowledged is lost."""
    session.install(*group("tests"), ".")
    kills = session.posargs[0] if session.posargs else "1000"
    session.run("pytest", "-q", "tests/crash", env={"CLEVERAGENTS_KILLS": kills})


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Run every benchmark, or those named; each exits non-zero when it misses its goal."""
    session.install(".[bench]")
    programs = session.posargs or sorted(path.stem for path in Path("benchmarks").glob("[a-z]*.py"))
    for program in programs:
        session.run("python", f"benchmarks/{program}.py")
