"""Fixers from `.pre-commit-config.yaml`: its hooks, as programs that are installed here.

A hook runs as pre-commit runs it, with its arguments and on the files that it is meant for.
A hook that is not known to change files, and not known to only look, is named and not run.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cleveragents.infrastructure.fixers.fixer import FileChoice, Fixer
from cleveragents.infrastructure.fixers.known_hooks import CHECKS, KNOWN_HOOKS, TAGS, KnownHook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.infrastructure.fixers.configuration import Configuration
    from cleveragents.infrastructure.fixers.fixer import Programs

FILE: Final = ".pre-commit-config.yaml"
#: Arguments by which a program only looks, or fails because it fixed something.
_NOT_TO_FIX: Final = {
    "--check",
    "--check-only",
    "--diff",
    "--exit-non-zero-on-fix",
    "--exit-non-zero-on-format",
}
_STAGES: Final = {"commit", "pre-commit"}


def precommit_fixers(files: Configuration, programs: Programs) -> Iterator[Fixer]:
    """Yield the hooks that change files, in their order, and those of which nobody knows."""
    config = files.yaml(FILE)
    for repository in _mappings(config.get("repos")):
        local = repository.get("repo") == "local"
        for hook in _mappings(repository.get("hooks")):
            name = str(hook.get("id", ""))
            known = KNOWN_HOOKS.get(name) or (_by_entry(hook) if local else None)
            if known is not None:
                yield _fixer(programs, known, hook, config)
            elif not name.startswith(CHECKS) or local:
                yield _unknown(name, hook)


def _fixer(
    programs: Programs, known: KnownHook, hook: dict[str, Any], config: dict[str, Any]
) -> Fixer:
    alone = hook.get("pass_filenames") is False
    argv = (*known.command, *_further(known, _list(hook.get("args"))))
    if alone and not known.finds_files:
        argv = (*argv, ".")
    choice = None if alone or known.finds_files else _choice(known, hook, config)
    fixer = programs.fixer(known.name, argv, _why(hook), codes=known.codes, files=choice)
    return replace(fixer, why_not=_not_now(hook) or _bad_pattern(choice) or fixer.why_not)


def _unknown(name: str, hook: dict[str, Any]) -> Fixer:
    reason = f"what it changes is not known here; run `pre-commit run {shlex.quote(name)}`"
    return Fixer(_node_name(name), (name,), _why(hook), _not_now(hook) or reason)


def _by_entry(hook: dict[str, Any]) -> KnownHook | None:
    """Return what a hook of the repository itself runs, if it is a fixer that is known."""
    try:
        words = shlex.split(str(hook.get("entry", "")))
    except ValueError:
        return None
    for known in KNOWN_HOOKS.values():
        same = 2 if known.command[0] in {"ruff", "biome", "cargo", "terraform"} else 1
        if words[:same] == list(known.command[:same]):
            command = (*known.command, *_further(known, words[same:]))
            # Without the names of files, it has those of folders, or none.
            return replace(known, command=command, finds_files=hook.get("pass_filenames") is False)
    return None


def _further(known: KnownHook, given: list[Any]) -> Iterator[str]:
    """Yield what a hook adds to its command: many programs refuse to be told a thing twice."""
    for one in map(str, given):
        if one not in known.command and one not in _NOT_TO_FIX:
            yield one


def _choice(known: KnownHook, hook: dict[str, Any], config: dict[str, Any]) -> FileChoice:
    wanted = hook.get("files") or config.get("files") or ""
    unwanted = (hook.get("exclude"), config.get("exclude"))
    return FileChoice(
        suffixes=_suffixes(hook, known),
        wanted=str(wanted),
        unwanted=tuple(str(one) for one in unwanted if one),
    )


def _suffixes(hook: dict[str, Any], known: KnownHook) -> tuple[str, ...]:
    tags = [str(one) for one in _list(hook.get("types_or")) or _list(hook.get("types"))]
    if not tags or any(one not in TAGS for one in tags):
        return known.suffixes
    return tuple(suffix for one in tags for suffix in TAGS[one])


def _bad_pattern(choice: FileChoice | None) -> str | None:
    for one in (choice.wanted, *choice.unwanted) if choice else ():
        try:
            re.compile(one)
        except re.error as error:
            return f"the pattern {one!r} cannot be read: {error}"
    return None


def _not_now(hook: dict[str, Any]) -> str | None:
    stages = [str(one) for one in _list(hook.get("stages"))]
    if not stages or _STAGES & set(stages):
        return None
    return f"it is for the stage `{stages[0]}` only"


def _why(hook: dict[str, Any]) -> str:
    return f"{FILE} hook `{hook.get('id', '')}`"


def _node_name(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("._-") or "hook"


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [one for one in _list(value) if isinstance(one, dict)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
