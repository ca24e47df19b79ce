"""A fixer as a value: a program that a repository is configured for and that changes its files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from cleveragents.infrastructure.sandbox.program_folders import find_program, search_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: Where a tree keeps programs of its own; these come before those of the machine.
OWN_FOLDERS: Final = (".venv/bin", "venv/bin", "node_modules/.bin")

# Bytes that text files are made of, by the rule that `pre-commit` and `file` go by.
_TEXT_BYTES: Final = bytes({7, 8, 9, 10, 11, 12, 13, 27} | set(range(0x20, 0x100)) - {0x7F})
_HEAD_BYTES: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChoice:
    """Which files a fixer is given by name; without `suffixes`, every text file."""

    suffixes: tuple[str, ...] = ()
    #: A pattern that a path must match, and patterns that it must not, found anywhere in it.
    wanted: str = ""
    unwanted: tuple[str, ...] = ()

    def takes(self, path: str) -> bool:
        """Say whether a path is chosen, by its name alone."""
        return (
            (not self.suffixes or path.endswith(self.suffixes))
            and re.search(self.wanted, path) is not None
            and not any(re.search(one, path) for one in self.unwanted)
        )

    def takes_content(self, data: bytes) -> bool:
        """Say whether a file is chosen by what it holds: fixers of text would ruin the others."""
        return bool(self.suffixes) or not data[:_HEAD_BYTES].translate(None, _TEXT_BYTES)

    def plain(self) -> dict[str, Any]:
        """Return the choice as the input of a node."""
        return {
            "suffixes": list(self.suffixes),
            "wanted": self.wanted,
            "unwanted": list(self.unwanted),
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `plain` wrote."""
        return cls(
            suffixes=tuple(plain["suffixes"]),
            wanted=plain["wanted"],
            unwanted=tuple(plain["unwanted"]),
        )


@dataclass(frozen=True, slots=True)
class Fixer:
    """A program that changes files, and where the repository asks for it."""

    name: str
    argv: tuple[str, ...]
    #: File and table, line or hook, such as `pyproject.toml [tool.ruff]`.
    why: str
    #: Why it cannot run here; None when it can.
    why_not: str | None = None
    #: The files that it is given by name; None for one that finds them by itself.
    files: FileChoice | None = field(default=None, kw_only=True)
    #: Exit codes that are no failure: many tell by theirs that they changed something.
    codes: tuple[int, ...] = field(default=(0,), kw_only=True)
    #: Runs only when it is asked for by name.
    on_request: bool = field(default=False, kw_only=True)

    @property
    def runnable(self) -> bool:
        """Say whether it can run here."""
        return self.why_not is None


@dataclass(frozen=True, slots=True)
class FoundCheck:
    """A command that says whether the tree still works, and where the repository has it from."""

    argv: tuple[str, ...]
    why: str
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class Programs:
    """Where programs are looked for: in the tree's own environments, then on the `PATH`."""

    folders: tuple[str, ...]

    @classmethod
    def around(cls, root: Path, path: str) -> Self:
        """Return the programs that a tree and a `PATH` offer."""
        own = (str(root / folder) for folder in OWN_FOLDERS)
        return cls((*own, *search_path(path)))

    def find(self, name: str) -> str | None:
        """Return where a program is."""
        return find_program(name, self.folders)

    def fixer(self, name: str, argv: tuple[str, ...], why: str, **options: Any) -> Fixer:
        """Return a fixer that starts the program that was found, or says that there is none."""
        found = self.find(argv[0])
        if found is None:
            return Fixer(name, argv, why, f"`{argv[0]}` is not installed", **options)
        return Fixer(name, (found, *argv[1:]), why, **options)

    def check(self, argv: tuple[str, ...], why: str) -> FoundCheck:
        """Return a check, likewise."""
        found = self.find(argv[0])
        if found is None:
            return FoundCheck(argv, why, f"`{argv[0]}` is not installed")
        return FoundCheck((found, *argv[1:]), why)
