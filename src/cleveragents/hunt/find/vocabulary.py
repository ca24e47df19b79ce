"""Names that tell what a value is and what a method does to it."""

from __future__ import annotations

import ast
import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from cleveragents.hunt.find.events import Op

__all__ = [
    "AMBIGUOUS",
    "FIRST_ARGUMENT_CHANGES",
    "METHODS",
    "VIEWS",
    "WAITS",
    "Kind",
    "caller_locks",
    "claims_safety",
    "is_confined",
    "kind_of",
    "kind_of_annotation",
    "looks_like_a_lock",
    "terminal",
    "walk",
]


class Kind(StrEnum):
    """What a name is bound to."""

    LOCK = "lock"
    #: A lock of an event loop: it keeps threads apart from nothing.
    LOOP_LOCK = "loop-lock"
    #: Built for threads, or one for each of them.
    SAFE = "safe"
    QUEUE = "queue"
    CONTAINER = "container"
    PLAIN = "plain"
    UNKNOWN = "unknown"


_LOCKS: Final = frozenset({"Lock", "RLock", "Condition", "allocate_lock", "FileLock"})
_SEMAPHORES: Final = frozenset({"Semaphore", "BoundedSemaphore"})
_QUEUES: Final = frozenset({"Queue", "LifoQueue", "PriorityQueue", "SimpleQueue", "JoinableQueue"})
_SAFE: Final = frozenset(
    {"Barrier", "ContextVar", "Event", "ProcessPoolExecutor", "ThreadPoolExecutor", "Thread"}
    | {"Timer", "count", "getLogger", "get_logger", "local"}
)
_CONTAINERS: Final = frozenset(
    {"ChainMap", "Counter", "OrderedDict", "WeakKeyDictionary", "WeakSet", "WeakValueDictionary"}
    | {"bytearray", "defaultdict", "deque", "dict", "list", "set"}
)
_TYPES: Final = frozenset(
    {"Dict", "DefaultDict", "Deque", "List", "MutableMapping", "MutableSequence", "MutableSet"}
    | {"Set"}
)
_LOOP: Final = frozenset({"asyncio", "anyio", "trio"})
_LITERALS: Final = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)

_ADDING: Final = (
    "add append appendleft extend extendleft incr increment insert move_to_end push put put_nowait "
    "reverse rotate set sort store subtract update write"
)
_REMOVING: Final = (
    "clear delete difference_update discard get_nowait intersection_update pop popitem popleft "
    "remove symmetric_difference_update"
)
_READING: Final = (
    "__contains__ contains copy count empty exists full get has index items keys most_common peek "
    "qsize total values"
)
#: What methods of containers do, by name.
METHODS: Final[dict[str, Op]] = {
    **dict.fromkeys(_ADDING.split(), Op.ADD),
    **dict.fromkeys(_REMOVING.split(), Op.REMOVE),
    **dict.fromkeys(_READING.split(), Op.READ),
    "setdefault": Op.ENSURE,
}
#: Names that many things have which are no containers.
AMBIGUOUS: Final = frozenset(
    {"add", "delete", "incr", "increment", "insert", "put", "put_nowait", "get_nowait", "push"}
    | {"remove", "set", "store", "update", "write", "clear", "copy", "index", "count", "sort"}
)
VIEWS: Final = frozenset({"keys", "values", "items"})
#: Functions that change their first argument.
FIRST_ARGUMENT_CHANGES: Final[dict[str, Op]] = {
    "heappush": Op.ADD,
    "heapify": Op.ADD,
    "heappop": Op.REMOVE,
    "heapreplace": Op.REMOVE,
    "heappushpop": Op.REMOVE,
    "insort": Op.ADD,
    "insort_left": Op.ADD,
    "insort_right": Op.ADD,
    "shuffle": Op.ADD,
}
WAITS: Final = frozenset({"sleep", "wait", "wait_for", "join", "result"})

_LOCK_NAME: Final = re.compile(
    r"(?:^|_)(?:r?lock|mutex|monitor|semaphore|cond(?:ition)?|synchronized)s?(?:$|_)"
    r"|(?<![bc])lock$"
)
_CALLER_NAME: Final = re.compile(r"_(?:un)?locked$|_no_?lock$|_(?:lock_held|nolock|holding_lock)$")
_CALLER_DOC: Final = re.compile(
    r"lock\b[^.]{0,30}\b(?:be|is|already) held|(?:caller|must)[^.]{0,20}\bhold|under the lock"
    r"|with the lock held|lock must be (?:held|acquired)|assumes[^.]{0,20}lock",
    re.IGNORECASE,
)
_CLAIM: Final = re.compile(
    r"thread[- ]?safe|safe (?:to share|for (?:use|sharing)|across threads|from (?:any|several|many"
    r"|multiple))|(?:may|can) (?:be shared|share)|concurren(?:t|cy)"
    r"|(?<!as )(?:many|several|multiple) threads",
    re.IGNORECASE,
)
_CONFINED: Final = re.compile(
    r"\b(?:for|by|of) (?:one|a single) thread\b(?! (?:or|and))"
    r"|\bone thread (?:alone|only|at a time)\b",
    re.IGNORECASE,
)
_DENIAL: Final = re.compile(
    r"\b(?:not|n't|never|isn't|un|without|no|nor|single)\b[^.]{0,40}$|non-?\s?$", re.IGNORECASE
)


@lru_cache(maxsize=512)
def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """Return a node and all below it, as `ast.walk` does; several readers ask for the same."""
    found = [node]
    for one in found:
        for name in one._fields:
            value = getattr(one, name, None)
            if isinstance(value, list):
                found.extend(item for item in value if isinstance(item, ast.AST))
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                found.append(value)
    return tuple(found)


def terminal(node: ast.AST) -> str:
    """Return the last name of a dotted expression, of what it calls, or of what it indexes."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def kind_of_annotation(annotation: ast.AST | None) -> Kind:
    """Tell what a type says: `dict[str, int] | None` is a container."""
    names = [terminal(one) for one in ast.walk(annotation)] if annotation is not None else []
    name = next((one for one in names if one), "")
    if name in _CONTAINERS | _TYPES:
        return Kind.CONTAINER
    return Kind.LOCK if name in _LOCKS else Kind.QUEUE if name in _QUEUES else Kind.UNKNOWN


def kind_of(value: ast.AST | None) -> Kind:
    """Tell what an expression makes."""
    if value is None or isinstance(value, ast.Constant | ast.Tuple | ast.UnaryOp | ast.JoinedStr):
        return Kind.PLAIN
    if isinstance(value, _LITERALS):
        return Kind.CONTAINER
    if isinstance(value, ast.Call):
        return _kind_of_call(value)
    if isinstance(value, ast.BoolOp | ast.IfExp):
        arms = value.values if isinstance(value, ast.BoolOp) else [value.body, value.orelse]
        kinds = {kind_of(arm) for arm in arms} - {Kind.UNKNOWN, Kind.PLAIN}
        return kinds.pop() if len(kinds) == 1 else Kind.UNKNOWN
    return Kind.UNKNOWN


def _kind_of_call(call: ast.Call) -> Kind:
    name = terminal(call.func)
    if name == "field":
        factory = next((one.value for one in call.keywords if one.arg == "default_factory"), None)
        if isinstance(factory, ast.Lambda):
            return kind_of(factory.body)
        return Kind.PLAIN if factory is None else _kind_of_call(ast.Call(factory, [], []))
    if _is_of_a_loop(call.func):
        return Kind.LOOP_LOCK
    if name in _SEMAPHORES:
        size = call.args[0] if call.args else ast.Constant(1)
        return Kind.LOCK if isinstance(size, ast.Constant) and size.value == 1 else Kind.SAFE
    for names, kind in (
        (_LOCKS, Kind.LOCK),
        (_QUEUES, Kind.QUEUE),
        (_SAFE, Kind.SAFE),
        (_CONTAINERS, Kind.CONTAINER),
    ):
        if name in names:
            return kind
    return Kind.UNKNOWN


def _is_of_a_loop(function: ast.AST) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id in _LOOP
    )


def looks_like_a_lock(name: str) -> bool:
    """Say whether a name is one that people give to locks."""
    return bool(_LOCK_NAME.search(name.lower()))


def caller_locks(name: str, docstring: str | None) -> bool:
    """Say whether a function says of itself that its caller holds the lock."""
    return bool(_CALLER_NAME.search(name)) or bool(docstring and _CALLER_DOC.search(docstring))


def is_confined(docstring: str | None) -> bool:
    """Say whether a docstring says that one thread alone uses the object."""
    return bool(_CONFINED.search(" ".join((docstring or "").split())))


def claims_safety(docstring: str | None) -> bool:
    """Say whether a docstring claims, and does not deny, that threads may share the object."""
    text = " ".join((docstring or "").split())
    claims = [text[: found.start()] for found in _CLAIM.finditer(text)]
    return bool(claims) and not any(map(_DENIAL.search, claims))
