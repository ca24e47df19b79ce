"""Counts the tests of each kind; run as a program it writes the counts into docs/testing.md."""

from __future__ import annotations

import ast
import re

from tidy.source import ROOT, sources, tree_of

DOCUMENT = ROOT / "docs" / "testing.md"


def counts() -> dict[str, int]:
    return {
        "rules": pytest_functions("unit"),
        "proofs": pytest_functions("proofs"),
        "stress": pytest_functions("stress"),
        "crash": pytest_functions("crash"),
        "tidy": pytest_functions("tidy"),
        "behave": lines_like("features", "*.feature", r"^\s*Scenario:"),
        "Robot": robot_tests(),
    }


def pytest_functions(folder: str) -> int:
    return sum(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for path in sources(ROOT / "tests" / folder)
        for node in ast.walk(tree_of(path))
    )


def lines_like(folder: str, names: str, pattern: str) -> int:
    return sum(
        len(re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE))
        for path in (ROOT / folder).glob(names)
    )


def robot_tests() -> int:
    """Only what stands at the margin below the heading is the name of a test."""
    bodies = [
        path.read_text(encoding="utf-8").split("*** Test Cases ***")[1]
        for path in (ROOT / "robot").glob("*.robot")
    ]
    return sum(len(re.findall(r"^\w", body, re.MULTILINE)) for body in bodies)


def documented() -> dict[str, int]:
    rows = re.findall(r"^\| (\w+) \| (\d+) \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    return {kind: int(count) for kind, count in rows}


def write() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for kind, count in counts().items():
        text = re.sub(rf"^\| {kind} \| \d+ \|", f"| {kind} | {count} |", text, flags=re.MULTILINE)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
