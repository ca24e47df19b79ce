"""A repository with stand-ins for its tools, and commands that are run in it for real."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from cleveragents.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


class FixWorld:
    """`bin` is on the `PATH` before the system's own programs; a tool is a few lines of `sh`."""

    def __init__(self, folder: Path, capfd) -> None:
        self.root = folder / "tree"
        self.bin = folder / "bin"
        self._capfd = capfd
        self.root.mkdir()
        self.bin.mkdir()
        subprocess.run(["git", "init", "-q", self.root], check=True)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def tool(self, name: str, script: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def tools(self, **scripts: str) -> None:
        """Configure the tree for tools of Python, and install them."""
        self.write("pyproject.toml", "".join(f"[tool.{name}]\n" for name in scripts))
        for name, script in scripts.items():
            self.tool(name, script)

    def run(self, *arguments: str):
        code = main(arguments)
        return Answer(code, *self._capfd.readouterr())

    @property
    def files(self) -> dict[str, str]:
        return {
            os.fspath(path.relative_to(self.root)): path.read_text(encoding="utf-8")
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and path.relative_to(self.root).parts[0] not in _OURS
        }


_OURS = {".git", ".cleveragents"}


class Answer:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err
