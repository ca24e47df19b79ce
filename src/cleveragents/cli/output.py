"""The only module that prints: stdout is data, stderr is talk."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cleveragents.domain.errors import CleverAgentsError


def data(text: str) -> None:
    """Print what was asked for."""
    sys.stdout.write(f"{text}\n")


def record(value: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    data(json.dumps(value, ensure_ascii=False, default=str))


def talk(text: str) -> None:
    """Say what happens, on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def facts(pairs: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> str:
    """Return aligned lines of names and values."""
    rows = [(str(name), str(value)) for name, value in dict(pairs).items()]
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


def error(problem: CleverAgentsError, *, as_json: bool) -> None:
    """Show an error as people read it, or as the record it is."""
    if as_json:
        record(problem.to_dict())
        return
    talk(f"error[{problem.code}]: {problem.message}")
    if problem.facts:
        talk(facts(problem.facts))
    if problem.hint:
        talk(f"\nhint: {problem.hint}")
