"""Everything that must hold, run by `nox`: lint, types, and all tests with their coverage."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "types", "tests", "free_threaded"]
nox.options.reuse_existing_virtualenvs = True

PYPROJECT = nox.project.load_toml("pyproject.toml")
# Shows where every thread stands, and ends: a run that waits for ever tells nothing.
A_TEST_THAT_HANGS = ("--timeout=180", "--timeout-method=thread")
# Tests wait for disks and processes, kills and journeys more than others: so many fill two cores.
WORKERS = ("-n", "3", "--dist", "worksteal")
WORKERS_THAT_WAIT = ("-n", "4", "--dist", "worksteal")
PROOFS = ("frontrun", "pytest", "-q", "-n", "2", *A_TEST_THAT_HANGS, "tests/proofs")
WITH_LITELLM = frozenset({"cost", "processes"})
FREE_THREADED = next(filter(shutil.which, ("python3.14t", "python3.13t")), None)


def group(name: str) -> list[str]:
    """Return the pinned packages of a dependency group."""
    return list(nox.project.dependency_groups(PYPROJECT, name))


def install(session: nox.Session, *packages: str) -> None:
    """Install packages; of their thousands of modules only those that are imported are compiled."""
    # And only once, also where the environment says that nothing of it may be written.
    session.env["PYTHONDONTWRITEBYTECODE"] = None
    session.install("--no-compile", *packages)


@nox.session
def lint(session: nox.Session) -> None:
    """Check the lint rules and the format."""
    install(session, *group("lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types, strictly."""
    install(session, *group("types"), "nox", "genai-prices>=0.2.1", "pathspec>=1.0", "PyYAML>=6")
    session.run("mypy", "--num-workers=2")


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests on the built wheel, and demand the coverage of three runners together."""
    install(session, *group("tests"), ".")
    session.run("coverage", "erase")
    pytest = ("pytest", "-q", "--durations=20", *A_TEST_THAT_HANGS)
    behave = ("coverage", "run", "-m", "behave", "--format=progress", "--no-summary")
    robot = ("coverage", "run", "-m", "robot", "--outputdir=results", "--console=dotted", "robot")
    with ThreadPoolExecutor(2) as pool:
        # Two at a time fill what pytest leaves of two cores; what they say is shown at their end.
        beside = [pool.submit(session.run, *one, silent=True) for one in (behave, robot, PROOFS)]
        # Once here, and not by every worker at the same time: asserts are rewritten and compiled.
        session.run("pytest", "-qq", "--collect-only", silent=True)
        traced = (*WORKERS, "-m", "not long", "tests/unit")
        session.run("coverage", "run", "-m", *pytest, *traced, *session.posargs)
        # Races, kills, journeys and what is said of all values cover nothing that others do not;
        # a tracer changes their time, or doubles it.
        untraced = (*WORKERS_THAT_WAIT, "-m", "long")
        session.run(*pytest, *untraced, *session.posargs)
    for one in beside:
        session.log(one.result())
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session
def proofs(session: nox.Session) -> None:
    """Explore the interleavings of every pair of calls; the planted bugs must be found."""
    install(session, *group("proofs"), ".")
    session.run(*PROOFS, *session.posargs)


@nox.session(python=FREE_THREADED or False)
def free_threaded(session: nox.Session) -> None:
    """Run the stress tests without an interpreter lock, where such an interpreter is found."""
    if FREE_THREADED is None:
        session.skip("no python3.14t or python3.13t on this machine")
    install(session, "pytest", "hypothesis", ".")
    session.run("pytest", "-q", "tests/stress")


@nox.session
def crash(session: nox.Session) -> None:
    """Kill a thousand processes under load and check that nothing acknowledged is lost."""
    install(session, *group("tests"), ".")
    kills = session.posargs[0] if session.posargs else "1000"
    session.run("pytest", "-q", "tests/crash", env={"CLEVERAGENTS_KILLS": kills})


@nox.session
def properties(session: nox.Session) -> None:
    """Try a thousand examples of everything that is said of all values."""
    install(session, *group("tests"), ".")
    examples = session.posargs[0] if session.posargs else "1000"
    pytest = ("pytest", "-q", *WORKERS, "-m", "hypothesis", "tests/unit")
    session.run(*pytest, env={"CLEVERAGENTS_EXAMPLES": examples})


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Run every benchmark, or those named; each exits non-zero when it misses its goal."""
    programs = session.posargs or sorted(path.stem for path in Path("benchmarks").glob("[a-z]*.py"))
    install(session, ".[bench]")
    # LiteLLM and pydantic-ai want different versions of one SDK: who needs it comes last.
    for program in sorted(programs, key=WITH_LITELLM.__contains__):
        if program in WITH_LITELLM:
            install(session, ".[bench-litellm]")
        session.run("python", f"benchmarks/{program}.py")
