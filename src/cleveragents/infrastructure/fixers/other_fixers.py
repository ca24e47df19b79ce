"""Fixers of other languages: each is told by the file that configures it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.infrastructure.fixers.fixer import FileChoice
from cleveragents.infrastructure.fixers.known_hooks import C_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.infrastructure.fixers.configuration import Configuration
    from cleveragents.infrastructure.fixers.fixer import Fixer, FoundCheck, Programs

#: Name, command, exit codes that are no failure, and the files that tell it.
_TOOLS: Final = (
    ("rustfmt", "cargo fmt", (0,), ("Cargo.toml",)),
    ("gofmt", "gofmt -w .", (0,), ("go.mod",)),
    ("rubocop", "rubocop --autocorrect", (0, 1), (".rubocop.yml",)),
    ("taplo", "taplo format", (0,), ("taplo.toml", ".taplo.toml")),
    ("stylua", "stylua .", (0,), ("stylua.toml", ".stylua.toml")),
    ("dprint", "dprint fmt", (0,), ("dprint.json", ".dprint.json", "dprint.jsonc")),
    ("mix-format", "mix format", (0,), (".formatter.exs",)),
)
_CLIPPY: Final = "cargo clippy --fix --allow-dirty --allow-no-vcs --offline"


def other_fixers(files: Configuration, programs: Programs) -> Iterator[Fixer]:
    """Yield what tidies all but Python and JavaScript."""
    for name, command, codes, marks in _TOOLS:
        mark = files.first(*marks)
        if mark:
            yield programs.fixer(name, tuple(command.split()), mark, codes=codes)
    if files.has("Cargo.toml"):
        # It builds the whole package, and what it changes is not always what was meant.
        yield programs.fixer("clippy", tuple(_CLIPPY.split()), "Cargo.toml", on_request=True)
    style = files.first(".clang-format", "_clang-format")
    if style:
        choice = FileChoice(suffixes=C_SUFFIXES)
        yield programs.fixer("clang-format", ("clang-format", "-i"), style, files=choice)
    script = min((one.name for one in files.root.glob("*.tf")), default=None)
    if script:
        yield programs.fixer("terraform", ("terraform", "fmt", "-recursive", "."), script)


def other_check(files: Configuration, programs: Programs) -> FoundCheck | None:
    """Return how the tests of a Rust or a Go module run."""
    if files.has("Cargo.toml"):
        return programs.check(("cargo", "test", "--offline"), "Cargo.toml")
    if files.has("go.mod"):
        return programs.check(("go", "test", "./..."), "go.mod")
    return None
