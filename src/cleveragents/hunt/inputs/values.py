"""Small values for a parameter: from its type hint, else from its name."""

from __future__ import annotations

import collections.abc
import contextlib
import enum
import inspect
import sys
import types
import typing
from typing import Any

from cleveragents.hunt.inputs.hints import hints_of
from cleveragents.hunt.inputs.text import Text, name_of

__all__ = ["arguments_of", "values_for"]

_DEPTH_MAX = 4
_NOTHING = inspect.Parameter.empty

_SIMPLE: dict[Any, tuple[str, ...]] = {
    int: ("1", "2"),
    float: ("1.0", "2.0"),
    complex: ("1j",),
    str: ("'a'", "'b'"),
    bytes: ("b'a'", "b'b'"),
    bytearray: ("bytearray(b'a')",),
    bool: ("True", "False"),
    None: ("None",),
    type(None): ("None",),
    object: ("1", "2"),
    list: ("[1]", "[2]"),
    dict: ("{'a': 1}", "{'b': 2}"),
    set: ("{1}", "{2}"),
    frozenset: ("frozenset({1})",),
    tuple: ("(1,)", "(2,)"),
    type: ("object",),
    BaseException: ("ValueError('a')",),
    Exception: ("ValueError('a')",),
    collections.abc.Hashable: ("'a'", "'b'"),
}
#: What a call does when something fails is seldom tested, and may race as well.
_RAISING = "lambda *args, **kwargs: 1 / 0"
#: What a name suggests where nothing else does; the first part of a name that is found counts.
_BY_NAME: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("fn", "func", "function", "callback", "factory", "loader", "producer", "compute",
         "handler", "listener", "hook", "callable", "supplier", "creator", "builder", "action",
         "observer", "subscriber", "task", "job", "cb", "f", "predicate",
         "transform", "clock", "now", "timer"),
        ("lambda *args, **kwargs: [1]", "lambda *args, **kwargs: 1", _RAISING),
    ),
    (
        ("items", "values", "iterable", "elements", "entries", "records", "args", "rows", "batch",
         "sequence", "lst", "seq", "keys", "names", "events"),
        ("[1, 2]", "[3]", "['a', 'b']"),
    ),
    (
        ("mapping", "kwargs", "options", "config", "settings", "headers", "payload", "attrs",
         "params", "metadata", "mappings", "context", "extra", "d"),
        ("{'a': 1}", "{'b': 2}"),
    ),
    (
        ("n", "count", "amount", "size", "limit", "maxsize", "capacity", "num", "number", "delta",
         "step", "by", "k", "index", "i", "max", "min", "total", "qty", "quantity", "cost",
         "tokens", "weight", "priority", "port", "level", "depth", "width", "permits", "bytes",
         "points", "score", "price", "value", "val", "item", "x", "y", "element", "obj", "data",
         "v",
         "increment", "balance", "length", "capacity", "maximum", "threshold", "retries"),
        ("1", "2", "'a'", "[1]"),
    ),
    (
        ("timeout", "ttl", "seconds", "interval", "delay", "duration", "rate", "timestamp", "time",
         "ms", "period", "window", "deadline", "expiry"),
        ("1.0", "5.0"),
    ),
    (
        ("enabled", "flag", "force", "strict", "debug", "verbose", "block", "blocking", "on"),
        ("True", "False"),
    ),
    (("exc", "error", "exception", "err"), ("ValueError('a')",)),
    (("cls", "type", "kind", "class"), ("object", "'a'")),
)  # fmt: skip
_BY_NAME_ELSE = ("'a'", "'b'", "1", "[1]", "{'a': 1}", "lambda *args, **kwargs: 1", "None")
_LISTS = {
    collections.abc.Iterable, collections.abc.Sequence, collections.abc.Collection,
    collections.abc.MutableSequence, collections.abc.Container, collections.abc.Reversible, list,
}  # fmt: skip
_DICTS = {collections.abc.Mapping, collections.abc.MutableMapping, dict}
_SETS = {collections.abc.Set, collections.abc.MutableSet, set}


def values_for(parameter: inspect.Parameter, hint: Any, depth: int = 0) -> list[Text]:
    """Return values for a parameter, the likeliest first; none if nothing is known."""
    if hint is not _NOTHING and hint is not Any:
        found = _by_hint(hint, depth)
        if found:
            return found
    return _by_name(parameter.name)


def arguments_of(called: Any, *, depth: int = 0, skip: int = 0) -> list[Text] | None:
    """Return argument lists for a callable, the plainest first; None if it cannot be called.

    Parameters that may be left out are left out, and so are the first `skip` of them: `self`.
    """
    try:
        parameters = list(inspect.signature(called).parameters.values())[skip:]
    except (TypeError, ValueError):
        return [Text("")]
    hints = hints_of(vars(called).get("__init__", called) if isinstance(called, type) else called)
    columns: list[tuple[str, list[Text]]] = []
    for parameter in parameters:
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        if parameter.default is not _NOTHING:
            continue
        values = values_for(parameter, hints.get(parameter.name, parameter.annotation), depth)
        if not values:
            return None
        keyword = f"{parameter.name}=" if parameter.kind is parameter.KEYWORD_ONLY else ""
        columns.append((keyword, values))
    if not columns and any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return [Text(""), Text("1"), Text("'a'")]
    return list(_rows(columns))


def _rows(columns: list[tuple[str, list[Text]]]) -> list[Text]:
    """Return argument lists: all first values, then the others of one parameter at a time."""
    picks = [[0] * len(columns)]
    for number, (_, values) in enumerate(columns):
        picks.extend(
            [other if place == number else 0 for place in range(len(columns))]
            for other in range(1, len(values))
        )
    if len(columns) > 1:
        picks.insert(1, [min(1, len(values) - 1) for _, values in columns])
    rows = []
    for pick in picks:
        parts = [
            Text(f"{keyword}{values[choice].text}", values[choice].imports)
            for choice, (keyword, values) in zip(pick, columns, strict=True)
        ]
        rows.append(Text.joined("{}", parts))
    return list(dict.fromkeys(rows))


def _by_name(name: str) -> list[Text]:
    words = [word for word in name.lower().strip("_").split("_") if word]
    for word in reversed(words):
        for names, values in _BY_NAME:
            if word in names:
                return [Text(value) for value in values]
    return [Text(value) for value in _BY_NAME_ELSE]


def _by_hint(hint: Any, depth: int) -> list[Text]:  # noqa: PLR0911  # one for each kind of hint
    if depth > _DEPTH_MAX:
        return []
    if hint is Any:
        return [Text(value) for value in _SIMPLE[object]]
    if isinstance(hint, typing.TypeVar):
        bound = hint.__bound__ or (hint.__constraints__ or (object,))[0]
        return _by_hint(bound, depth + 1)
    if isinstance(hint, str | typing.ForwardRef):
        return []
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return _of_class(hint, depth)
    if origin in {typing.Union, types.UnionType}:
        real = [one for one in inner if one is not type(None)]
        found = [value for one in real for value in _by_hint(one, depth + 1)[:2]]
        return found + ([Text("None")] if len(real) < len(inner) else [])
    if origin is typing.Literal:
        return [Text(repr(one)) for one in inner]
    if origin in {typing.Annotated, typing.Final, typing.ClassVar}:
        return _by_hint(inner[0], depth + 1)
    if origin is collections.abc.Callable:
        return _callables(inner[-1] if inner else Any, depth)
    return _of_generic(origin, inner, depth)


def _of_generic(  # noqa: PLR0911  # one for each kind of container
    origin: Any, inner: tuple[Any, ...], depth: int
) -> list[Text]:
    if origin is type:
        return [name_of(inner[0])] if inner and isinstance(inner[0], type) else [Text("object")]
    parts = [(_by_hint(one, depth + 1) or [Text("1")]) for one in inner if one is not Ellipsis]
    if origin is tuple:
        firsts = [values[0] for values in parts]
        return [Text.joined("({},)", firsts)] if firsts else [Text("()")]
    if not parts:
        return _of_class(origin, depth)
    if origin in _LISTS or origin is collections.abc.Iterator:
        pattern = "iter([{}])" if origin is collections.abc.Iterator else "[{}]"
        return [Text.joined(pattern, [value]) for value in parts[0]]
    if origin in _SETS or origin is frozenset:
        pattern = "frozenset({{}})" if origin is frozenset else "{{}}"
        return [Text(pattern.replace("{}", one.text), one.imports) for one in parts[0]]
    if origin in _DICTS:
        return [
            Text(f"{{{key.text}: {parts[1][0].text}}}", key.imports | parts[1][0].imports)
            for key in parts[0]
        ]
    return _of_class(origin, depth)


def _callables(result: Any, depth: int) -> list[Text]:
    if result is Any or isinstance(result, typing.TypeVar):
        made = [Text("[1]"), Text("1")]
    else:
        made = _by_hint(result, depth + 1) or [Text("None")]
    texts = [Text(f"lambda *args, **kwargs: {one.text}", one.imports) for one in made]
    return [*texts[:2], Text(_RAISING)]


def _of_class(kind: Any, depth: int) -> list[Text]:  # noqa: PLR0911  # one for each kind
    if kind in _SIMPLE:
        return [Text(value) for value in _SIMPLE[kind]]
    if kind in {collections.abc.Callable, typing.Callable}:
        return _callables(Any, depth)
    for group, sample in ((_LISTS, list), (_DICTS, dict), (_SETS, set)):
        if kind in group:
            return [Text(value) for value in _SIMPLE[sample]]
    if not isinstance(kind, type):
        return []
    if issubclass(kind, enum.Enum):
        name = name_of(kind)
        return [Text(f"{name.text}.{one.name}", name.imports) for one in list(kind)[:2]]
    if getattr(kind, "_is_protocol", False) or inspect.isabstract(kind):
        return _of_abstract(kind, depth)
    if kind.__module__ in _BY_EXAMPLE:
        return _by_example(kind)
    return _built(kind, depth)


def _built(kind: type, depth: int) -> list[Text]:
    rows = arguments_of(kind, depth=depth + 1)
    if rows is None:
        return []
    name = name_of(kind)
    return [Text(f"{name.text}({row.text})", name.imports | row.imports) for row in rows[:2]]


def _of_abstract(kind: type, depth: int) -> list[Text]:
    """Return an object of a class that keeps the contract, or one that answers everything."""
    public = (name for name in dir(kind) if not name.startswith("_"))
    methods = [name for name in public if callable(getattr(kind, name))]
    for concrete in (*_below(kind), *_beside(kind, methods)):
        if not inspect.isabstract(concrete) and concrete.__module__ == kind.__module__:
            built = _built(concrete, depth + 1)
            if built:
                return built
    if getattr(kind, "_is_protocol", False) and "__call__" in vars(kind):
        return _callables(Any, depth)
    answers = ", ".join(f"{name}=lambda *args, **kwargs: 1" for name in methods)
    return [Text(f"SimpleNamespace({answers})", frozenset({"from types import SimpleNamespace"}))]


def _beside(kind: type, methods: list[str]) -> list[type]:
    """Return the classes of the same module that have all methods of a protocol."""
    around = vars(sys.modules[kind.__module__]).values() if methods else ()
    return [
        one
        for one in around
        if isinstance(one, type)
        and one is not kind
        and not getattr(one, "_is_protocol", False)
        and all(callable(getattr(one, name, None)) for name in methods)
    ]


def _below(kind: type) -> list[type]:
    direct: list[type] = type.__subclasses__(kind)
    return direct + [one for child in direct for one in _below(child)]


#: Modules whose classes show a literal of themselves, so that an example can be written down.
_BY_EXAMPLE = {"datetime", "decimal", "fractions", "uuid", "pathlib", "ipaddress"}


def _by_example(kind: type) -> list[Text]:
    """Return the smallest example that hypothesis knows of a class of the standard library."""
    from hypothesis import find, settings  # slow to import, and seldom needed
    from hypothesis import strategies as st

    if kind.__module__ == "pathlib":
        return [Text("Path('a')", frozenset({"from pathlib import Path"}))]
    with contextlib.suppress(Exception):
        known = settings(database=None, derandomize=True, max_examples=20)
        example = find(st.from_type(kind), lambda _: True, settings=known)
        module = kind.__module__
        text = repr(example)
        qualified = text if text.startswith(f"{module}.") else f"{module}.{text}"
        if eval(qualified, {module: __import__(module)}) == example:  # noqa: S307  # its own repr
            return [Text(qualified, frozenset({f"import {module}"}))]
    return []
