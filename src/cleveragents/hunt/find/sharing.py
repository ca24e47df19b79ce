"""Places in the source that speak for an object being shared by threads."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.hunt.candidate import EvidenceKind
from cleveragents.hunt.find.vocabulary import terminal, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["THREAD_TARGET", "Site", "read_sites"]

#: Calls that run what they are given in another thread.
_THREADS: Final = frozenset(
    {"Thread", "Timer", "submit", "run_in_executor", "to_thread", "start_new_thread"}
)
_POOL_METHODS: Final = frozenset({"map", "apply_async", "imap", "starmap"})
_POOLS: Final = ("Executor", "Pool")
_CONTAINERS: Final = frozenset({"Singleton", "ThreadSafeSingleton", "singleton", "register"})
_CACHES: Final = frozenset({"cache", "lru_cache"})
_INSTANCE: Final = frozenset({"_instance", "__instance", "_singleton", "instance"})
#: Before the name of a method that runs in a thread of its own.
THREAD_TARGET: Final = "."


class Site(NamedTuple):
    """One place, for a class that is still known by its written name alone."""

    kind: EvidenceKind
    #: The class, or `Class.method` for a method that a thread runs.
    about: str
    reason: str
    line: int


def read_sites(tree: ast.Module) -> list[Site]:
    """Return the places of one module."""
    reader = _SiteReader()
    reader.body(tree.body, "")
    return reader.sites


class _SiteReader:
    """Reads one function after the other, each with all that stands inside it."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self._class = ""
        self._in_function = False
        self._globals: frozenset[str] = frozenset()
        #: What names of the module, attributes and local names were made of.
        self._made: dict[str, str] = {}
        self._inner: dict[str, ast.AST] = {}
        self._pools: set[str] = set()

    def body(self, statements: Iterable[ast.stmt], class_name: str) -> None:
        """Read the statements of a module or of a class."""
        for node in statements:
            self._class = class_name
            if isinstance(node, ast.ClassDef):
                if "Thread" in map(terminal, node.bases):
                    for about in (node.name, f"{node.name}.run"):
                        self._add(EvidenceKind.PASSED_TO_THREADS, about, "It is a thread", node)
                self.body(node.body, node.name)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._function(node)
            else:
                self._nodes(walk(node))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        nodes = walk(node)
        made, self._made, self._in_function = self._made, dict(self._made), True
        self._inner = {one.name: one for one in nodes[1:] if isinstance(one, ast.FunctionDef)}
        shared = [one for one in nodes if isinstance(one, ast.Global)]
        self._globals = frozenset(name for one in shared for name in one.names)
        if not _CACHES.isdisjoint(map(terminal, node.decorator_list)) and not node.args.args:
            for one in nodes:
                if isinstance(one, ast.Return) and isinstance(one.value, ast.Call):
                    reason = f"`{node.name}` gives the same one to everybody"
                    self._add(EvidenceKind.SINGLETON, terminal(one.value), reason, one)
        self._nodes(nodes)
        attributes = {name: kind for name, kind in self._made.items() if name.startswith("_")}
        self._made, self._in_function = made | attributes, False
        self._inner, self._globals = {}, frozenset()

    def _nodes(self, nodes: Sequence[ast.AST]) -> None:
        """Read what names are made of first, then where they are passed."""
        for node in nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._assign(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._assign(node.target, node.value)
            elif isinstance(node, ast.withitem) and terminal(node.context_expr).endswith(_POOLS):
                self._pools.add(terminal(node.optional_vars or node.context_expr))
        for node in nodes:
            if isinstance(node, ast.Call):
                self._call(node)

    def _assign(self, target: ast.AST, value: ast.AST) -> None:
        name = terminal(target)
        if name in _INSTANCE and self._class:
            self._add(EvidenceKind.SINGLETON, self._class, "It keeps its only instance", target)
        if not isinstance(value, ast.Call):
            return
        made = terminal(value.func)
        if isinstance(value.func, ast.Attribute) and value.func.attr[:1].islower():
            # A class method that makes one: `Cache.create()`.
            made = terminal(value.func.value) or made
        self._made[name] = made
        if made.endswith(_POOLS):
            self._pools.add(name)
        if isinstance(target, ast.Name):
            if not self._in_function and not self._class:
                reason = f"The module keeps one as `{name}`"
                self._add(EvidenceKind.MODULE_INSTANCE, made, reason, target)
            elif name in self._globals:
                self._add(EvidenceKind.SINGLETON, made, f"`{name}` is made once for all", target)
        elif isinstance(target, ast.Subscript) and name.isupper():
            self._add(EvidenceKind.REGISTERED, made, f"It is registered in `{name}`", target)
        elif isinstance(target, ast.Attribute) and terminal(target.value) == "state":
            self._add(EvidenceKind.REGISTERED, made, "It is kept in an application's state", target)

    def _call(self, node: ast.Call) -> None:
        name = terminal(node.func)
        if name in _CONTAINERS and node.args:
            made = terminal(node.args[0])
            self._add(EvidenceKind.REGISTERED, made, f"It is registered by `{name}`", node)
        is_pool = isinstance(node.func, ast.Attribute) and terminal(node.func.value) in self._pools
        if name in _THREADS or (name in _POOL_METHODS and is_pool):
            for given in self._given(node):
                self._passed(given, name, node)

    @staticmethod
    def _given(node: ast.Call) -> Iterator[ast.AST]:
        values = [*node.args, *(one.value for one in node.keywords if one.arg != "name")]
        for value in values:
            if isinstance(value, ast.Tuple | ast.List):
                yield from value.elts
            else:
                yield value

    def _passed(self, given: ast.AST, by: str, at: ast.AST) -> None:
        reason = f"It is passed to threads by `{by}`"
        kind = EvidenceKind.PASSED_TO_THREADS
        if isinstance(given, ast.Attribute):
            holder = given.value
            if isinstance(holder, ast.Name) and holder.id in {"self", "cls"} and self._class:
                self._add(kind, self._class, reason, at)
                self._add(kind, f"{self._class}.{given.attr}", reason, at)
            self._add(kind, self._made.get(terminal(holder), ""), reason, at)
            self._add(kind, self._made.get(given.attr, ""), reason, at)
        elif isinstance(given, ast.Name) and given.id in self._inner:
            self._from_inside(self._inner[given.id], reason, at)
        elif isinstance(given, ast.Lambda):
            self._from_inside(given, reason, at)
        elif isinstance(given, ast.Name):
            self._add(kind, self._made.get(given.id, ""), reason, at)
            self._add(kind, f"{THREAD_TARGET}{given.id}", reason, at)

    def _from_inside(self, function: ast.AST, reason: str, at: ast.AST) -> None:
        for name in sorted({one.id for one in walk(function) if isinstance(one, ast.Name)}):
            made = self._class if name == "self" else self._made.get(name, "")
            self._add(EvidenceKind.PASSED_TO_THREADS, made, reason, at)

    def _add(self, kind: EvidenceKind, about: str, reason: str, node: ast.AST) -> None:
        if about:
            self.sites.append(Site(kind, about, reason, getattr(node, "lineno", 0)))
