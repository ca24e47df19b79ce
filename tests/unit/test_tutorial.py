"""Pages are executed: every command in a fresh repository, every output compared."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

DOCS = Path(__file__).parents[2] / "docs"

_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
#: What differs from run to run, and what stands for it.
_VOLATILE = (
    (re.compile(r"\b([pakcr])-[0-9a-f]{8,16}\b"), r"\1-ID"),
    (re.compile(r"\b[0-9a-f]{7,40}\.\.[0-9a-f]{7,40}\b"), "OLD..NEW"),
    (re.compile(r"\b\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?"), "DATE"),
    (re.compile(r"\b(\d+ min )?\d+(\.\d+)? s\b"), "T s"),
    # A retry that comes at once is not announced; when it comes is a matter of chance.
    (re.compile(r", again in T s"), ""),
    (re.compile(r"\b\d+ (events?|entries|entry)\b"), r"N \1"),
    (re.compile(r" +"), " "),
)
_ID = re.compile(r"\b[pk]-[0-9a-f]{8,16}\b")


class Shell:
    """One shell that all commands of a page are typed into."""

    def __init__(self, folder: Path) -> None:
        programs = Path(sys.executable).parent
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env={
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(folder),
                "LC_ALL": "C.UTF-8",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, command: str) -> str:
        typed, printed = self._process.stdin, self._process.stdout
        assert typed is not None
        assert printed is not None
        typed.write(f"{command}\necho '==end=='\n")
        typed.flush()
        lines = itertools.takewhile(lambda line: not line.endswith("==end==\n"), printed)
        # What the shell says of a job that was killed is its own matter.
        return "".join(line for line in lines if " Killed " not in line)

    def close(self) -> None:
        self._process.communicate(timeout=10)


def commands_of(block: str) -> list[tuple[str, str]]:
    """Return each command of a block with the output that stands below it."""
    found: list[tuple[list[str], list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line == ">" or line.startswith("> "):
            found[-1][0].append(line[2:])
        else:
            found[-1][1].append(line)
    return [("\n".join(command), "\n".join(output)) for command, output in found]


def played(text: str, folder: Path) -> list[tuple[str, str, str]]:
    """Run all commands; return each with the output of the page, and with what it printed."""
    shell, results = Shell(folder), []
    ids: dict[str, str] = {}
    try:
        for block in _BLOCK.findall(text):
            for command, expected in commands_of(block):
                printed = shell.type(" ".join(ids.get(word, word) for word in command.split(" ")))
                # The page has ids of its own: those of one output are paired in their order.
                ids.update(zip(_ID.findall(expected), _ID.findall(printed), strict=False))
                results.append((command, expected, printed))
    finally:
        shell.close()
    return results


def settled(output: str) -> list[str]:
    """Leave out what differs from run to run, and the order of nodes that run at once."""
    for pattern, word in _VOLATILE:
        output = pattern.sub(word, output)
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    groups = itertools.groupby(lines, lambda line: line.startswith(" ✓ "))
    return [line for nodes, group in groups for line in (sorted(group) if nodes else group)]


@pytest.mark.parametrize("page", ["tutorial", "recovery"])
def test_every_command_of_a_page_prints_what_the_page_says(tmp_path, page):
    results = played((DOCS / f"{page}.md").read_text(encoding="utf-8"), tmp_path)
    assert len(results) > 20
    for command, expected, printed in results:
        assert settled(printed) == settled(expected), command


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("done in 3 min 12 s: 2 of 2 nodes", ["done in T s: 2 of 2 nodes"]),
        ("  ✓ b   1 s\n  ✓ a   2 s\nplan p-12345678", [" ✓ a T s", " ✓ b T s", "plan p-ID"]),
    ],
)
def test_what_differs_from_run_to_run_is_left_out(output, told):
    assert settled(output) == told
