"""The project's files as the tidy tests read them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cleveragents"


def sources(folder: Path = PACKAGE) -> list[Path]:
    return sorted(folder.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def project_python() -> list[Path]:
    folders = ("src", "tests", "features", "robot", "benchmarks")
    return [*(path for folder in folders for path in sources(ROOT / folder)), ROOT / "noxfile.py"]
