"""Inputs that people or tests know: a file of factories, and a record of calls."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cleveragents.domain.errors import SetupError
from cleveragents.hunt.inputs.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Known", "known_inputs"]


@dataclass(frozen=True, slots=True)
class Known:
    """Expressions by `module:Class` and argument lists by `module:Class.method`."""

    factories: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, factories: Mapping[str, str] | None, rows: Mapping[str, Any] | None) -> Known:
        """Return what another process tells."""
        recorded = {name: tuple(map(str, calls)) for name, calls in (rows or {}).items()}
        return cls(dict(factories or {}), recorded)

    def with_more(self, other: Known) -> Known:
        """Return both, the other's first."""
        names = {**other.arguments, **self.arguments}
        arguments = {
            name: (*other.arguments.get(name, ()), *self.arguments.get(name, ())) for name in names
        }
        return Known({**self.factories, **other.factories}, arguments)

    def constructions(self, target: str, name: Text) -> list[Text]:
        """Return ways to build a target such as `app.cache:Cache`, the factory's first."""
        found = [Text(self.factories[target], name.imports)] if target in self.factories else []
        rows = self.arguments.get(f"{target}.__init__", ())
        return found + [Text(f"{name.text}({row})", name.imports) for row in rows]

    def calls(self, target: str, method: str) -> list[Text]:
        """Return argument lists that a method was seen to be called with."""
        key = f"{target}.{method}" if not target.endswith(":") else f"{target}{method}"
        return [Text(row) for row in self.arguments.get(key, ())]


def known_inputs(factories: Path | None, recorded: Path | None) -> Known:
    """Read both files; a file that cannot be read is the user's to mend, and said to be so."""
    return Known(
        {} if factories is None else _factories(factories),
        {} if recorded is None else _recorded(recorded),
    )


def _factories(path: Path) -> dict[str, str]:
    """Run a file that says `FACTORIES = {"app.cache:Cache": "Cache(limit=2)"}`."""
    scope: dict[str, Any] = {}
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), scope)  # noqa: S102  # the user's file
    except Exception as error:
        message = f"The factories in `{path}` cannot be read: {type(error).__name__}: {error}"
        raise SetupError(message, code="CA1001") from error
    found = scope.get("FACTORIES")
    if not isinstance(found, dict):
        message = f"`{path}` must set FACTORIES to a dict of `module:Class` to an expression"
        raise SetupError(message, code="CA1001")
    return {str(key): str(value) for key, value in found.items()}


def _recorded(path: Path) -> dict[str, tuple[str, ...]]:
    found = json.loads(path.read_text(encoding="utf-8"))
    return {key: tuple(rows) for key, rows in found.items()}
