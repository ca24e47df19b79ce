"""What an actor may hand to the nodes that need it: plain JSON values, strictly checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError

#: Deeper values are nobody's output, and a value that holds itself has no end.
_DEPTH_MAX: Final = 100
_EXCERPT_CHARS: Final = 40


def parsed_json(text: str) -> Any:
    """Read one JSON value; `ValueError` says where it stops being one, `NaN` is none."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        near = text[error.pos : error.pos + _EXCERPT_CHARS]
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{error.msg} at {place}, near {near!r}") from None


def as_json(value: Any) -> str:
    """Write a JSON value as ASCII text; mappings that a plan keeps frozen are mappings."""
    return json.dumps(value, default=dict)


def plain_json(value: Any, *, of: str) -> Any:
    """Return a copy of a JSON-like value made of plain types, or refuse it with CA5204."""
    return _plain(value, of, "", 0)


def _plain(value: Any, of: str, place: str, depth: int) -> Any:
    if depth > _DEPTH_MAX:
        raise output_error(
            f"The output of {of} must be at most {_DEPTH_MAX} levels deep, got more", of
        )
    if value is None or isinstance(value, bool):
        return value
    # Of a stranger's own class, such as an enumeration, only what it stands for leaves.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(one, of, f"{place}[{at}]", depth + 1) for at, one in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {
            str.__str__(key): _plain(one, of, f"{place}.{key}", depth + 1)
            for key, one in value.items()
        }
    raise _not_json(value, of, place)


def _not_json(value: Any, of: str, place: str) -> SandboxError:
    got = repr(value) if isinstance(value, float) else f"a `{type(value).__name__}`"
    if isinstance(value, Mapping):
        got = "a mapping with keys that are no texts"
    where = f" at `{place.removeprefix('.')}`" if place else ""
    return output_error(
        f"The output of {of} must be made of texts, numbers, true, false, null, lists and mappings"
        f" of texts to those, got {got}{where}",
        of,
        hint="Return what JSON can hold, such as `str(path)` or `dataclasses.asdict(record)`",
    )


def output_error(message: str, of: str, *, hint: str | None = None) -> SandboxError:
    """Return the refusal of an output; a next attempt is told about it."""
    facts = {"category": ErrorCategory.CHECK_FAILED, "actor": of}
    return SandboxError(message, code="CA5204", facts=facts, hint=hint)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"`{name}` is no JSON")
