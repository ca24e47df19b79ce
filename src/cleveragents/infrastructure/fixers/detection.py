"""What a repository is configured to tidy and to test itself with; nothing is run to find out."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from cleveragents.infrastructure.fixers.configuration import Configuration
from cleveragents.infrastructure.fixers.fixer import Programs
from cleveragents.infrastructure.fixers.node_fixers import node_check, node_fixers
from cleveragents.infrastructure.fixers.other_fixers import other_check, other_fixers
from cleveragents.infrastructure.fixers.precommit_fixers import precommit_fixers
from cleveragents.infrastructure.fixers.python_fixers import python_check, python_fixers

if TYPE_CHECKING:
    from pathlib import Path

    from cleveragents.infrastructure.fixers.fixer import Fixer, FoundCheck


def found_fixers(root: Path, path: str | None = None) -> tuple[Fixer, ...]:
    """Return what the files at the root of a tree ask for; `path` is a `PATH`, ours by default.

    What cannot run here is among them, with its reason. Hooks of pre-commit come first and in
    their order: they say most precisely how a tool is to run.
    """
    files, programs = Configuration(root), _programs(root, path)
    found: dict[str, Fixer] = {}
    hooks: dict[str, int] = {}
    for fixer in precommit_fixers(files, programs):
        # One hook may stand there twice, with other arguments.
        times = hooks[fixer.name] = hooks.get(fixer.name, 0) + 1
        name = fixer.name if times == 1 else f"{fixer.name}-{times}"
        found[name] = replace(fixer, name=name)
    for part in (python_fixers, node_fixers, other_fixers):
        for fixer in part(files, programs):
            known = found.get(fixer.name)
            if known is None or (fixer.runnable and not known.runnable):
                found[fixer.name] = fixer
    return tuple(found.values())


def found_check(root: Path, path: str | None = None) -> FoundCheck | None:
    """Return the command that tests a tree: one that can run before one that cannot."""
    files, programs = Configuration(root), _programs(root, path)
    parts = (python_check, node_check, other_check)
    found = [one for part in parts if (one := part(files, programs)) is not None]
    return min(found, key=lambda one: one.why_not is not None, default=None)


def given_check(root: Path, argv: tuple[str, ...], path: str | None = None) -> FoundCheck:
    """Return a check that a person gave, with the program that the tree has for it.

    One that cannot be found is tried all the same: it may be a script of the tree.
    """
    return replace(_programs(root, path).check(argv, "as given"), why_not=None)


def _programs(root: Path, path: str | None) -> Programs:
    return Programs.around(root, os.environ.get("PATH", os.defpath) if path is None else path)
