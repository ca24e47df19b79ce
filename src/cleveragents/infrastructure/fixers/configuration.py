"""Configuration files of a repository, as they were written; what cannot be read is refused."""

from __future__ import annotations

import configparser
import json
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cleveragents.domain.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Configuration:
    """The files at the root of a tree; each is read when it is first asked for, and kept.

    For one thread.
    """

    root: Path
    _read: dict[str, Any] = field(default_factory=dict, repr=False)

    def has(self, name: str) -> bool:
        """Say whether there is a file of this name."""
        return (self.root / name).is_file()

    def first(self, *names: str) -> str | None:
        """Return the first of these files that is there."""
        return next((name for name in names if self.has(name)), None)

    def toml(self, name: str) -> dict[str, Any]:
        """Return what a TOML file holds; nothing when it is not there."""
        return self._mapping(name, tomllib.loads)

    def json(self, name: str) -> dict[str, Any]:
        """Return what a JSON file holds; nothing when it is not there."""
        return self._mapping(name, json.loads)

    def yaml(self, name: str) -> dict[str, Any]:
        """Return what a YAML file holds; nothing when it is not there."""
        return self._mapping(name, _yaml)

    def sections(self, name: str) -> frozenset[str]:
        """Return the sections of an INI file; none when it is not there."""
        return frozenset(self._mapping(name, _ini))

    def _mapping(self, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
        if name not in self._read:
            self._read[name] = self._parsed(name, parse)
        found: dict[str, Any] = self._read[name]
        return found

    def _parsed(self, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
        try:
            value = parse((self.root / name).read_text(encoding="utf-8-sig"))
        except (FileNotFoundError, IsADirectoryError):
            return {}
        except (OSError, ValueError, RecursionError, configparser.Error) as error:
            raise SetupError(
                f"`{name}` cannot be read: {str(error).splitlines()[0]}",
                facts={"file": name},
                hint="Correct the file: the programs that it configures cannot read it either",
            ) from None
        return value if isinstance(value, dict) else {}


def table(value: Any, *keys: str) -> Any:
    """Return what lies below keys of nested tables; None where there is nothing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def _ini(text: str) -> dict[str, Any]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    return dict.fromkeys(parser.sections())
