"""A module as the rules see it: its classes, its functions, its own state, and who imports whom."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cleveragents.hunt.find.expressions import Known
from cleveragents.hunt.find.reader import AnyFunction, read_function
from cleveragents.hunt.find.sharing import Site, read_sites
from cleveragents.hunt.find.vocabulary import (
    Kind,
    claims_safety,
    is_confined,
    kind_of,
    kind_of_annotation,
    looks_like_a_lock,
    terminal,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cleveragents.hunt.find.events import Function

__all__ = ["ClassFacts", "ModuleFacts", "read_module"]

#: Classes with such a base keep no state that threads could share, or are tests.
_STATELESS: Final = frozenset(
    {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "NamedTuple", "Protocol", "TypedDict"}
    | {"BaseException", "Exception", "NodeTransformer", "NodeVisitor", "TestCase"}
)
_THREADS: Final = frozenset({"threading", "_thread", "concurrent"})
#: A name, the value that it is bound to, and the type that is written for it.
_Value = tuple[str, ast.AST | None, ast.AST | None]
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFacts:
    """One class without its bases."""

    #: By its qualified name.
    name: str
    line: int
    bases: tuple[str, ...]
    methods: Mapping[str, Function]
    kinds: Mapping[str, Kind]
    #: Conditions by the lock that they were made of.
    lock_aliases: Mapping[str, str]
    claims_safety: bool
    #: Its docstring says that it is for one thread.
    is_confined: bool
    is_stateless: bool
    is_abstract: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFacts:
    """One module."""

    path: str
    #: Its dotted name, and the folder that it is found from.
    name: str = ""
    import_root: str = "."
    #: How many dots its widest relative import has.
    relative_level: int
    #: The dotted names that it imports.
    imported: frozenset[str]
    classes: tuple[ClassFacts, ...]
    functions: Mapping[str, Function]
    kinds: Mapping[str, Kind]
    #: The line of each name that the module binds at its top.
    lines: Mapping[str, int]
    #: Local names by the name that they were imported as.
    imports: Mapping[str, str]
    uses_threads: bool
    #: Decorators that take a lock, by the name of the lock.
    guards: Mapping[str, str]
    sites: tuple[Site, ...] = field(default=())


def read_module(tree: ast.Module, path: str) -> ModuleFacts:
    """Read a module; where it stands among others is worked out when all are read."""
    bindings = list(_bindings(tree.body))
    functions = [one for one in tree.body if isinstance(one, _FUNCTIONS)]
    kinds = _kinds(bindings)
    around = Known(
        module_names=frozenset(kinds) | {one.name for one in functions},
        locks=_locks(kinds, functions),
    )
    imported = list(_imports(tree))
    return ModuleFacts(
        path=path,
        relative_level=max(
            (full.count(".", 0, len(full) - len(full.lstrip("."))) for _, full in imported),
            default=0,
        ),
        imported=frozenset(full for _, full in imported),
        classes=tuple(_classes(tree.body, "", around)),
        functions={one.name: read_function(one, around) for one in functions},
        kinds=kinds,
        lines={name: getattr(value, "lineno", 1) for name, value, _ in bindings[::-1]},
        imports={local: full for local, full in imported if local},
        uses_threads=any(full.split(".")[0] in _THREADS for _, full in imported),
        guards=dict(_guards(functions)),
        sites=tuple(read_sites(tree)),
    )


def _bindings(body: Iterable[ast.stmt]) -> Iterator[_Value]:
    """Yield the names that statements at the top bind."""
    for node in body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value, None
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value, node.annotation
        elif isinstance(node, ast.If | ast.Try):
            yield from _bindings([*node.body, *node.orelse])


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname or "", alias.name)
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            for alias in node.names:
                yield alias.asname or alias.name, f"{source}.{alias.name}"


def _locks(kinds: Mapping[str, Kind], functions: Iterable[AnyFunction]) -> dict[str, str]:
    """Return the names that are locks, and the context managers that hold one around a body."""
    locks = {name: name for name, kind in kinds.items() if kind is Kind.LOCK}
    for function in functions:
        if "contextmanager" in map(terminal, function.decorator_list):
            read = read_function(function, Known(selves=frozenset({"self"}), locks=locks))
            held = [hold.lock for event in read.events for hold in event.holds]
            items = [
                item for one in walk(function) if isinstance(one, ast.With) for item in one.items
            ]
            named = [
                name
                for name in (terminal(item.context_expr) for item in items)
                if name in locks or looks_like_a_lock(name)
            ]
            taken = [*held, *named]
            if taken:
                locks[function.name] = taken[0]
    return locks


def _guards(functions: Iterable[AnyFunction]) -> Iterator[tuple[str, str]]:
    """Yield the decorators of a module that run what they wrap inside a lock."""
    for function in functions:
        inner = [one for one in walk(function) if isinstance(one, ast.With)]
        if inner and any(isinstance(one, _FUNCTIONS) for one in walk(function)):
            wrapper = read_function(function, Known())
            held = {hold.lock for event in wrapper.events for hold in event.holds}
            names = [terminal(item.context_expr) for one in inner for item in one.items]
            taken = sorted(held) or [name for name in names if "lock" in name.lower()]
            if taken and _wraps(function):
                yield function.name, taken[0]


def _wraps(function: AnyFunction) -> bool:
    """Say whether a function returns one that it defines."""
    inner = {one.name for one in walk(function) if isinstance(one, _FUNCTIONS)}
    return any(
        isinstance(one, ast.Return) and one.value is not None and terminal(one.value) in inner
        for one in walk(function)
    )


def _classes(body: Iterable[ast.stmt], outer: str, around: Known) -> Iterator[ClassFacts]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            name = f"{outer}{node.name}"
            yield _read_class(node, name, around)
            yield from _classes(node.body, f"{name}.", around)
        elif isinstance(node, ast.If | ast.Try):
            yield from _classes([*node.body, *node.orelse], outer, around)


def _read_class(node: ast.ClassDef, name: str, around: Known) -> ClassFacts:
    functions = [one for one in node.body if isinstance(one, _FUNCTIONS)]
    values: list[_Value] = list(_bindings(node.body))
    for function in functions:
        values += _attributes(function, frozenset(_first_parameter(function)))
    kinds = _kinds(values)
    aliases = dict(_lock_aliases(values))
    locks = {**around.locks, **_locks(kinds, functions), **aliases}
    methods: dict[str, Function] = {}
    for function in functions:
        selves = frozenset({node.name, *_first_parameter(function)})
        read = read_function(function, replace(around, selves=selves, locks=locks))
        methods[_method_name(read)] = read
    bases = tuple(filter(None, (terminal(base) for base in node.bases)))
    return ClassFacts(
        name=name,
        line=node.lineno,
        bases=bases,
        methods=methods,
        kinds=kinds,
        lock_aliases=aliases,
        claims_safety=claims_safety(ast.get_docstring(node)),
        is_confined=is_confined(ast.get_docstring(node)),
        is_stateless=not _STATELESS.isdisjoint(bases) or _is_frozen(node),
        is_abstract=any("abstractmethod" in method.decorators for method in methods.values()),
    )


def _method_name(function: Function) -> str:
    """Name a method; the setter of a property does not hide its getter."""
    for part in ("setter", "deleter"):
        if part in function.decorators:
            return f"{function.name}.{part}"
    return function.name


def _first_parameter(function: AnyFunction) -> list[str]:
    if "staticmethod" in map(terminal, function.decorator_list):
        return []
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)[:1]]


def _attributes(function: AnyFunction, selves: frozenset[str]) -> Iterator[_Value]:
    """Yield what a method binds to attributes, with the type that is written for it."""
    types = {one.arg: one.annotation for one in (*function.args.args, *function.args.kwonlyargs)}
    for node in walk(function):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
        if annotation is None and isinstance(node.value, ast.Name):
            annotation = types.get(node.value.id)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id in selves
            ):
                yield target.attr, node.value, annotation


def _kinds(values: Iterable[_Value]) -> dict[str, Kind]:
    """Return what each attribute is; the first value that tells more than nothing decides."""
    kinds: dict[str, Kind] = {}
    for name, value, annotation in values:
        kind = kind_of(value)
        if kind in {Kind.PLAIN, Kind.UNKNOWN}:
            written = kind_of_annotation(annotation)
            kind = kind if written is Kind.UNKNOWN else written
        if kinds.get(name, Kind.PLAIN) is Kind.PLAIN:
            kinds[name] = kind
    return kinds


def _lock_aliases(values: Iterable[_Value]) -> Iterator[tuple[str, str]]:
    for name, value, _ in values:
        if isinstance(value, ast.Call) and terminal(value.func) == "Condition" and value.args:
            yield name, terminal(value.args[0])


def _is_frozen(node: ast.ClassDef) -> bool:
    return any(
        isinstance(decorator, ast.Call)
        and any(
            one.arg == "frozen" and isinstance(one.value, ast.Constant) and one.value.value is True
            for one in decorator.keywords
        )
        for decorator in node.decorator_list
    )
