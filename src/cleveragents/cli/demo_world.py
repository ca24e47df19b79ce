"""The world of the demo: a repository with a plan, and the programs that work on it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import SetupError
from cleveragents.domain.money import Money

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: The file that all actors edit at once.
SHARED: Final = "basket.py"
#: What one call is billed, and the most that it could have cost.
BILL: Final = Money.of("0.015")
BOUND: Final = Money.of("0.02")
AT_ONCE: Final = 8

#: Settings of the user that say how this machine is to be used; others are not the demo's.
_KEPT_SETTINGS: Final = ("CLEVERAGENTS_SANDBOX_KIND", "CLEVERAGENTS_CONFINEMENT")
_OWN_FILES: Final = (".git", ".cleveragents")

_ACTORS: Final = '''\
"""What the actors of the demo do: each replaces the loop of one function, as a model would."""

import time


def rewrite(attempt):
    part = attempt.inputs["part"]
    before = attempt.files.read("{shared}").decode()
    # Promised before the call, at the most that it can cost; charged what it was billed.
    attempt.purse.reserve("{bound}").settle("{bill}")
    time.sleep(0.3 + int(part) % 5 / 20)  # stands for the answer of a model
    head, mark, tail = before.partition(f"def total_{{part}}(prices):\\n")
    _, end, rest = tail.partition("    return result\\n")
    text = f"{{head}}{{mark}}    return sum(prices)\\n{{rest}}"
    attempt.files.write("{shared}", text.encode())
'''


def budget_of(actors: int) -> Money:
    """Return a budget that is enough for every call once, and for none of them twice."""
    return Money(actors * BILL.pico + BOUND.pico)


def plan_text(actors: int) -> str:
    """Return the plan of the demo; JSON is YAML, so that nothing needs quotes of its own."""
    parts = json.dumps([f"{number:02}" for number in range(actors)])
    # The same place of one file is a conflict; whoever comes second works on what the first made.
    note = json.dumps('sleep 0.5; echo "- $WHO has seen every loop" >> changes.md')
    # Careless at first; told what the check said, it does better.
    guide = json.dumps(
        'if [ "$CLEVERAGENTS_FEEDBACK" ]; then echo "Totals use sum";'
        ' else echo "Totals use loops"; fi > guide.md'
    )
    return f"""\
goal: Replace every loop of {SHARED} by sum()
budget: {{max_usd: {budget_of(actors).usd:f}}}
at_once: {AT_ONCE}
nodes:
  note:
    for_each: [ann, ben]
    env: {{WHO: "${{item}}"}}
    actor: {{command: {note}, shell: true}}
  total:
    for_each: {parts}
    inputs: {{part: "${{item}}"}}
    actor: {{python: "shop_actors:rewrite"}}
  guide:
    needs: [note, total]
    actor: {{command: {guide}, shell: true}}
    check: grep -q sum guide.md
"""


def make_repository(root: Path, actors: int) -> None:
    """Make a git repository with one file for all actors, and their plan."""
    files = {
        SHARED: "\n\n".join(['"""The totals of a shop."""\n', *map(_source, range(actors))]),
        "changes.md": "# Changes\n\n",
        "shop_actors.py": _ACTORS.format(
            shared=SHARED, bound=f"{BOUND.usd:f}", bill=f"{BILL.usd:f}"
        ),
        "plan.yaml": plan_text(actors),
    }
    commit_files(root, files)


def commit_files(root: Path, files: Mapping[str, str]) -> None:
    """Make a git repository whose first commit has these files."""
    root.mkdir(parents=True)
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    author = ("-c", "user.name=CleverAgents demo", "-c", "user.email=demo@example.com")
    git(root, *author, "commit", "--quiet", "--message", "the shop before the actors came")


def _source(number: int) -> str:
    return (
        f"def total_{number:02}(prices):\n"
        "    result = 0\n"
        "    for price in prices:\n"
        "        result += price\n"
        "    return result\n"
    )


def edits_in(text: str, actors: int) -> int:
    """Return how many of the actors find their own edit in a text of the shared file."""
    wanted = (
        f"def total_{number:02}(prices):\n    return sum(prices)\n" for number in range(actors)
    )
    return sum(one in text for one in wanted)


def tree_of(root: Path) -> dict[str, bytes]:
    """Return all files of the repository but git's and ours."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
        and path.relative_to(root).parts[0] not in _OWN_FILES
        and "__pycache__" not in path.parts
    }


def environment() -> dict[str, str]:
    """Return a world in which git and CleverAgents see the demo's repository alone."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT_SETTINGS or not name.startswith(("GIT_", "CLEVERAGENTS_"))
    }
    return kept | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTHONIOENCODING": "utf-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        # The only address that a demo speaks to is on this machine.
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


def git(root: Path, *arguments: str, stdin: bytes = b"") -> None:
    """Run git in a folder."""
    try:
        subprocess.run(  # arguments are ours, none comes from outside
            ["git", *arguments],  # noqa: S607  # the user's own git
            cwd=root,
            env=environment(),
            input=stdin,
            capture_output=True,
            check=True,
        )
    except FileNotFoundError:
        raise SetupError(
            "The demo needs `git`, and there is none on the PATH",
            code="CA1006",
            hint="Install git, then run `cleveragents demo` again",
        ) from None
