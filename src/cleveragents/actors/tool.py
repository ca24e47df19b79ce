"""A tool as a value: what it is called, what it takes, what it may do, and how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from cleveragents.domain.conditions import did_you_mean
from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cleveragents.application.attempts import AttemptContext
    from cleveragents.domain.stop_signal import StopSignal

Kind: TypeAlias = Literal["text", "whole", "flag"]

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_JSON_TYPES: Final[Mapping[Kind, str]] = {"text": "string", "whole": "integer", "flag": "boolean"}
_SAYS: Final[Mapping[Kind, str]] = {
    "text": "text",
    "whole": "a whole number",
    "flag": "true or false",
}


class Permission(StrEnum):
    """What a tool needs to be allowed to do."""

    READ = "read"
    WRITE = "write"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument of a tool; with a default it may be left out."""

    name: str
    about: str
    kind: Kind = "text"
    required: bool = True
    default: Any = None
    #: Of a number, the least and the most; of a text, its length.
    least: int | None = None
    most: int | None = None

    @property
    def says(self) -> str:
        """The rule, as it stands behind `must be`."""
        unit = " characters" if self.kind == "text" else ""
        if self.least is not None and self.most is not None:
            return f"{_SAYS[self.kind]} of {self.least} to {self.most}{unit}"
        if self.least is not None:
            return f"{_SAYS[self.kind]} from {self.least}{unit}"
        return _SAYS[self.kind]

    def schema(self) -> dict[str, Any]:
        """Return the rule as JSON schema."""
        bounds = ("minLength", "maxLength") if self.kind == "text" else ("minimum", "maximum")
        limits = zip(bounds, (self.least, self.most), strict=True)
        return {
            "type": _JSON_TYPES[self.kind],
            "description": self.about,
            **{bound: limit for bound, limit in limits if limit is not None},
        }

    def holds(self, value: Any) -> bool:
        """Say whether a value keeps the rule."""
        if self.kind == "flag":
            return isinstance(value, bool)
        if self.kind == "text":
            return isinstance(value, str) and self._within(len(value))
        return type(value) is int and self._within(value)

    def _within(self, size: int) -> bool:
        return (self.least is None or size >= self.least) and (
            self.most is None or size <= self.most
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the function of a tool sees it; its arguments keep their rules."""

    id: str
    attempt: AttemptContext
    arguments: Mapping[str, Any]
    #: Set when the call is out of time, or its attempt is stopped.
    stop: StopSignal

    def __getitem__(self, name: str) -> Any:
        """Return one argument."""
        return self.arguments[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What actors may call; `run` returns a text, and raises when it could not."""

    name: str
    description: str
    run: Callable[[ToolCall], str] = field(repr=False)
    parameters: tuple[Parameter, ...] = ()
    permission: Permission = Permission.READ
    timeout_s: float = 60.0
    #: In place of `parameters`, for a tool of others, who check the arguments themselves.
    json_schema: Mapping[str, Any] | None = field(default=None, repr=False)
    #: What it does is not in the sandbox, so it is never done again to rebuild one.
    outside: bool = False

    def __post_init__(self) -> None:
        names = [one.name for one in self.parameters]
        if not all(_NAME.fullmatch(name) for name in (self.name, *names)):
            raise RequestError(
                "The name of a tool and those of its parameters must be made of small letters,"
                f" digits and `_`, got {[self.name, *names]!r}"
            )
        if len(set(names)) < len(names):
            raise RequestError(f"The parameters of a tool must have different names, got {names!r}")
        if not self.timeout_s > 0:
            raise RequestError(f"`timeout_s` must be more than 0, got {self.timeout_s!r}")

    def schema(self) -> dict[str, Any]:
        """Return the parameters as JSON schema, as models want to be told."""
        if self.json_schema is not None:
            return dict(self.json_schema)
        return {
            "type": "object",
            "properties": {one.name: one.schema() for one in self.parameters},
            "required": [one.name for one in self.parameters if one.required],
            "additionalProperties": False,
        }

    def accepted(self, arguments: object) -> dict[str, Any]:
        """Return all arguments with defaults filled in, or refuse with CA5203 and all mistakes."""
        given = dict(arguments) if isinstance(arguments, Mapping) else None
        mistakes = (
            [f"The arguments must be a mapping of names to values, got {arguments!r:.80}"]
            if given is None
            else list(self._mistakes(given))
        )
        if given is None or mistakes:
            raise RequestError(
                f"The tool `{self.name}` cannot be called like this: {'; '.join(mistakes)}",
                code="CA5203",
                facts={"tool": self.name, "mistakes": tuple(mistakes)},
                hint=f"Call it as `{self.name}({', '.join(map(_shown, self.parameters))})`",
            )
        if self.json_schema is not None:
            return given
        values = ((one.name, given.get(one.name), one.default) for one in self.parameters)
        return {name: default if value is None else value for name, value, default in values}

    def _mistakes(self, given: Mapping[Any, Any]) -> Iterator[str]:
        if self.json_schema is not None:
            missing = (one for one in self.json_schema.get("required", ()) if one not in given)
            yield from (f"`{name}` is missing" for name in missing)
            return
        names = [one.name for one in self.parameters]
        for name in given:
            if name not in names:
                yield f"`{name}` is not known{did_you_mean(name, names)}"
        for one in self.parameters:
            value = given.get(one.name)
            if value is None:
                if one.required:
                    yield f"`{one.name}` is missing: {one.about}"
            elif isinstance(value, str) and not _is_encodable(value):
                yield f"`{one.name}` must be text that UTF-8 can hold, got a lone surrogate"
            elif not one.holds(value):
                is_long = one.kind == "text" and isinstance(value, str)
                got = f"{len(value)} characters" if is_long else f"{value!r:.80}"
                yield f"`{one.name}` must be {one.says}, got {got}"


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _shown(parameter: Parameter) -> str:
    return parameter.name if parameter.required else f"{parameter.name}={parameter.default!r}"
