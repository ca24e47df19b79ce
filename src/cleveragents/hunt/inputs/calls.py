"""Calls of an object's methods, and ways to build it, as expressions."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cleveragents.hunt.inputs.text import Text, name_of
from cleveragents.hunt.inputs.values import arguments_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Call", "calls_of", "constructions_of"]

_VARIANTS_MAX = 8
#: Special methods as people write them.
_SPECIAL = {
    "__getitem__": "subject[{}]",
    "__contains__": "{} in subject",
    "__len__": "len(subject)",
    "__iter__": "list(subject)",
    "__bool__": "bool(subject)",
    "__next__": "next(subject)",
    "__call__": "subject({})",
    "__repr__": "repr(subject)",
    "__str__": "str(subject)",
    "__new__": "subject({})",
    "__init__": "subject({})",
}
#: What Python passes, where nobody writes the arguments.
_PASSED = {"__exit__": (Text("None, None, None"), Text("ValueError, ValueError('a'), None"))}


@dataclass(frozen=True, slots=True)
class Call:
    """One method with the ways to call it, the plainest first."""

    name: str
    texts: tuple[Text, ...]


def calls_of(owner: Any, name: str, seen: Sequence[Text] = ()) -> Call | str:
    """Return how a method of a class, or a function of a module, is called; or why it is not.

    `seen` are argument lists that it was seen to be called with; they come first.
    """
    try:
        found = inspect.getattr_static(owner, name)
    except AttributeError:
        return f"`{name}` is not there"
    if isinstance(found, property | functools.cached_property):
        return Call(name, (Text(f"subject.{name}"),))
    called = getattr(owner, name)
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        return f"`{name}` is a coroutine: only one event loop runs it"
    if not callable(called):
        return Call(name, (Text(f"subject.{name}"),))
    return _method(owner, name, found, seen)


def _method(owner: Any, name: str, found: object, seen: Sequence[Text]) -> Call | str:
    called = getattr(owner, name)
    pattern = _SPECIAL.get(name, f"subject.{name}({{}})")
    itself = isinstance(owner, type) and not isinstance(found, staticmethod | classmethod)
    if name in {"__new__", "__init__"}:
        called, itself = owner, False
    rows: Sequence[Text] | None = _PASSED.get(name, (Text(""),))
    if name not in _PASSED and "{}" in pattern:
        rows = arguments_of(called, skip=int(itself))
    if rows is None and not seen:
        return f"`{name}` has parameters of which nothing is known"
    known = [*seen, *(rows or ())][:_VARIANTS_MAX]
    texts = [Text(pattern.replace("{}", row.text), row.imports) for row in known]
    return Call(name, tuple(dict.fromkeys(texts)))


def constructions_of(owner: type | ModuleType) -> list[Text]:
    """Return expressions that build the subject, the plainest first."""
    if isinstance(owner, ModuleType):
        return [Text(owner.__name__, frozenset({f"import {owner.__name__}"}))]
    name = name_of(owner)
    rows = arguments_of(owner) or []
    return [Text(f"{name.text}({row.text})", name.imports | row.imports) for row in rows]
