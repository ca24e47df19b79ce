"""The whole hunt by reading: files, modules, owners, rules, and the candidates best first."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cleveragents.hunt.find.candidates import candidates_of
from cleveragents.hunt.find.evidence import Reasons
from cleveragents.hunt.find.files import is_test, list_files, read_source
from cleveragents.hunt.find.modules import ModuleFacts, read_module
from cleveragents.hunt.find.naming import module_of
from cleveragents.hunt.find.scopes import Tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cleveragents.hunt.candidate import Candidate

__all__ = ["Found", "Skipped", "find"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or an owner in it, that was left out."""

    path: str
    #: A sentence without a period.
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """What reading gave."""

    #: The most worth trying first.
    candidates: tuple[Candidate, ...]
    skipped: tuple[Skipped, ...]
    #: How many modules were read.
    modules: int


def find(root: Path, targets: Sequence[str]) -> Found:
    """Read the Python files below the targets and name the state that threads may race for.

    `targets` are files and folders, relative to the root; none means all of it. Nothing is run.
    """
    files = list_files(root, targets)
    skipped: list[Skipped] = []
    modules: list[ModuleFacts] = []
    for path in files:
        read = _read(root, path)
        if isinstance(read, Skipped):
            skipped.append(read)
        else:
            modules.append(read)
    tree = Tree(_placed(root, modules))
    reasons = Reasons(tree)
    candidates: list[Candidate] = []
    for module in tree.modules:
        if is_test(files[module.path]):
            continue
        if not module.name:
            skipped.append(Skipped(module.path, "No import can name it"))
            continue
        for scope in tree.scopes(module, reasons.targets(module)):
            named, why = candidates_of(scope, reasons.of(scope))
            candidates += named
            skipped += [Skipped(module.path, why)] if why else []
    candidates.sort(key=lambda one: (-one.rank, one.path, one.line, one.state))
    return Found(tuple(candidates), tuple(sorted(skipped, key=_place)), len(modules))


def _place(one: Skipped) -> tuple[str, str]:
    return one.path, one.reason


def _read(root: Path, path: str) -> ModuleFacts | Skipped:
    source, why = read_source(root / path)
    if why:
        return Skipped(path, why)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, path)
        return read_module(tree, path)
    except SyntaxError as error:
        return Skipped(path, f"It does not parse: {error.msg} in line {error.lineno}")
    except (ValueError, RecursionError, MemoryError) as error:
        return Skipped(path, f"It does not parse: {error}")


def _placed(root: Path, modules: Sequence[ModuleFacts]) -> list[ModuleFacts]:
    """Give each module its name, now that it is known who imports whom."""
    imported = frozenset().union(*(module.imported for module in modules))
    packages: dict[str, bool] = {}

    def is_package(folder: str) -> bool:
        if folder not in packages:
            packages[folder] = (root / folder / "__init__.py").is_file()
        return packages[folder]

    placed = []
    for module in modules:
        place = module_of(module.path, is_package, imported, module.relative_level)
        import_root, name = place or (".", "")
        placed.append(replace(module, import_root=import_root, name=name))
    return placed
