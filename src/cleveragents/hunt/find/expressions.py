"""Expressions as events: which state each of them reads, tests, changes or calls."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.hunt.find.events import GLOBAL, Event, Hold, Op, Path
from cleveragents.hunt.find.shapes import bound_names, is_last, is_nothing, literal, names_along
from cleveragents.hunt.find.vocabulary import (
    AMBIGUOUS,
    FIRST_ARGUMENT_CHANGES,
    METHODS,
    VIEWS,
    WAITS,
    Kind,
    kind_of,
    looks_like_a_lock,
    terminal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ExpressionReader", "Known", "Touch"]

_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
#: Through these the state is still in sight: `self.d.get(k).n`, `self.d.setdefault(k, [])`.
_PASSES: Final = frozenset({"get", "setdefault"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of the names before a function is read."""

    #: The first parameter of a method, and whatever else stands for the object or its class.
    selves: frozenset[str] = frozenset()
    #: The names that the module binds at its top, and those that functions declare global.
    module_names: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    locals: frozenset[str] = frozenset()
    is_context_manager: bool = False
    #: Locks, and what takes them when it is entered, by the name of the lock.
    locks: Mapping[str, str] = field(default_factory=dict)


class Touch(NamedTuple):
    """A state that an expression leads to."""

    state: str
    depth: int = 0
    key: str | None = None


class ExpressionReader:
    """Reads expressions in the order in which they run; one reader for one function."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.events: list[Event] = []
        self.tested: set[str] = set()
        #: The deepest state that the function hands out.
        self.returns: Touch | None = None
        self.lock_per_call: set[str] = set()
        self._holds: frozenset[Hold] = frozenset()
        self._path: Path = ()
        #: Local names for the state itself or for what it holds.
        self._aliases: dict[str, Touch] = {}
        #: Local names for locks, and for the states that a local value came from.
        self._locks: dict[str, str] = {}
        self._origins: dict[str, frozenset[str]] = {}
        self._own_locks = 0
        self._testing = False
        self._catching = False
        self._numbers = count(1)
        #: Whether a context manager has run what it wraps.
        self._is_after = False

    # -- what a name stands for -----------------------------------------------------------

    def touch(self, node: ast.AST) -> Touch | None:
        """Return the state that an expression leads to, if it does."""
        if isinstance(node, ast.Name):
            is_global = node.id in self.known.module_names and node.id not in self.known.locals
            found = Touch(GLOBAL + node.id) if is_global else None
            return self._aliases.get(node.id, found)
        if isinstance(node, ast.Attribute):
            is_own = self._is_self(node.value)
            return Touch(node.attr) if is_own else _deeper(self.touch(node.value), None)
        if isinstance(node, ast.Subscript):
            return _deeper(self.touch(node.value), literal(node.slice))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if self._is_self(node.func.value):
                return Touch(f"{node.func.attr}()")
            if node.func.attr in _PASSES:
                return _deeper(self.touch(node.func.value), literal(*node.args[:1]))
        return None

    def _is_self(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.known.selves
        if isinstance(node, ast.Attribute):
            return node.attr == "__class__" and self._is_self(node.value)
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "type"
            and len(node.args) == 1
            and self._is_self(node.args[0])
        )

    def lock_of(self, node: ast.AST) -> str | None:
        """Return the lock that an expression leads to: "" for one that it makes, or None."""
        if isinstance(node, ast.Name) and node.id in self._locks:
            return self._locks[node.id]
        if kind_of(node) is Kind.LOCK and isinstance(node, ast.Call):
            # A condition made of a lock is that lock; everything else is made for this call.
            return self.lock_of(node.args[0]) if terminal(node) == "Condition" and node.args else ""
        locks = self.known.locks
        names = [one for one in names_along(node) if one in locks or looks_like_a_lock(one)]
        if not names:
            return None
        name = locks.get(names[-1], names[-1])
        by_key = any(isinstance(part, ast.Subscript) for part in ast.walk(node))
        chosen = isinstance(node, ast.Call) and bool(node.args)
        return f"{name}[]" if by_key or chosen else name

    # -- what happens ---------------------------------------------------------------------

    def emit(
        self, op: Op, touch: Touch, node: ast.AST, *, clears: bool = False, guessed: bool = False
    ) -> None:
        """Note one event under the locks and in the branch that the reader is in."""
        if self._own_locks:
            self.lock_per_call.add(touch.state)
        if op is Op.READ and (self._testing or (self._catching and touch.depth)):
            op = Op.TEST
        line = getattr(node, "lineno", 0)
        path = (*self._path, (0, 1)) if self._is_after else self._path
        place = (line, self._holds, path)
        self.events.append(Event(op, touch.state, *place, touch.depth, touch.key, clears, guessed))

    def hold(self, lock: str) -> None:
        """Enter a lock."""
        if lock:
            self._holds |= {Hold(lock, next(self._numbers))}
        else:
            self._own_locks += 1

    def release(self, lock: str) -> None:
        """Leave a lock."""
        if lock:
            self._holds = frozenset(hold for hold in self._holds if hold.lock != lock)
        else:
            self._own_locks = max(0, self._own_locks - 1)

    def test(self, node: ast.AST) -> None:
        """Read an expression that decides what happens next."""
        before, self._testing = self._testing, True
        self.read(node)
        self._testing = before

    def read(self, node: ast.AST | None) -> None:
        """Read an expression, and what stands inside it first."""
        if node is None or isinstance(node, ast.Constant):
            return
        if isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            self._load(node)
        elif isinstance(node, _COMPREHENSIONS):
            self._comprehension(node)
        elif isinstance(node, ast.BoolOp):
            for value in node.values[:-1]:
                self.test(value)
            self.read(node.values[-1])
        elif isinstance(node, ast.IfExp):
            self.test(node.test)
            self.read(node.body)
            self.read(node.orelse)
        elif isinstance(node, ast.NamedExpr):
            self.read(node.value)
            self.bind(node.target, node.value, len(self.events))
        else:
            self._rest(node)

    def _rest(self, node: ast.AST) -> None:
        if isinstance(node, ast.Yield) and self.known.is_context_manager:
            # What is done before and after the block is two steps by intention.
            self.events = [one._replace(path=(*one.path, (0, 0))) for one in self.events]
            self._is_after = True
        if isinstance(node, ast.Await) and self._holds:
            self.emit(Op.STRANGER, Touch("await"), node)
        for child in ast.iter_child_nodes(node):
            self.read(child)

    def _load(self, node: ast.Name | ast.Attribute | ast.Subscript) -> None:
        if isinstance(node, ast.Name) and node.id in self.known.locals:
            if self._testing:
                self.tested |= self._origins.get(node.id, frozenset())
            return
        touch = self.touch(node)
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute | ast.Subscript):
            if isinstance(inner, ast.Subscript):
                self.read(inner.slice)
                if self._is_self(inner.value):
                    self._call_own("__getitem__", inner)
            inner = inner.value
        if isinstance(inner, ast.Call) or (touch is None and not isinstance(inner, ast.Name)):
            self.read(inner)
        elif isinstance(inner, ast.Name) and inner.id in self._origins and self._testing:
            self.tested |= self._origins[inner.id]
        if touch is not None:
            self.emit(Op.LAST if is_last(node) else Op.READ, touch, node)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> None:
        for generator in node.generators:
            self.iterate(generator.iter, generator.target)
            for condition in generator.ifs:
                self.read(condition)
        if isinstance(node, ast.DictComp):
            self.read(node.key)
            self.read(node.value)
        else:
            self.read(node.elt)

    def iterate(self, iterable: ast.AST, target: ast.AST) -> None:
        """Read a loop's head; its target stands for what the state holds."""
        source = iterable
        if isinstance(source, ast.Call) and terminal(source.func) in {"enumerate", "reversed"}:
            source = source.args[0] if source.args else source
        if (
            isinstance(source, ast.Call)
            and isinstance(source.func, ast.Attribute)
            and source.func.attr in VIEWS
        ):
            source = source.func.value
        if isinstance(source, ast.Name) and source.id in self.known.selves:
            self._call_own("__iter__", source)
        touch = self.touch(source)
        if touch is None:
            self.read(iterable)
        else:
            inside = Touch(touch.state, touch.depth + 1)
            self.emit(Op.ITERATE, inside, iterable)
            self._aliases |= dict.fromkeys(bound_names(target), inside)

    # -- calls ----------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> None:
        function = node.func
        arguments = [*node.args, *(one.value for one in node.keywords)]
        changed = FIRST_ARGUMENT_CHANGES.get(terminal(function)) if node.args else None
        first = self.touch(node.args[0]) if changed is not None else None
        for argument in arguments[1 if first is not None else 0 :]:
            self.read(argument)
        if changed is not None and first is not None:
            self.emit(changed, Touch(first.state, first.depth + 1), node)
        elif isinstance(function, ast.Attribute):
            self._method(node, function)
        elif isinstance(function, ast.Name):
            self._named_call(node, function)
        else:
            self.read(function)

    def _named_call(self, node: ast.Call, function: ast.Name) -> None:
        name = function.id
        if name in self._aliases or name in self.known.parameters:
            self._stranger(name, node, guessed=name in self.known.parameters)
        elif name == "len" and node.args and self.touch(node.args[0]) is not None:
            event = self.events[-1]
            if event.op is Op.READ:
                self.events[-1] = event._replace(op=Op.LAST)
        elif name in self.known.module_names:
            self._call_own(GLOBAL + name, node)
        elif name == "len" and node.args and self._is_self(node.args[0]):
            self._call_own("__len__", node)
        elif name in WAITS:
            self._stranger(name, node)
        elif name == "next" and node.args:
            touch = self.touch(node.args[0])
            if touch is not None:
                self.emit(Op.ADD, Touch(touch.state, touch.depth + 1), node)

    def _method(self, node: ast.Call, function: ast.Attribute) -> None:
        name, base = function.attr, function.value
        if name in {"acquire", "release", "__enter__", "__exit__"}:
            lock = self.lock_of(base)
            if lock is not None:
                (self.hold if name in {"acquire", "__enter__"} else self.release)(lock)
                return
        if self._is_self(base):
            self._call_own(name, node)
            return
        if isinstance(base, ast.Call) and terminal(base.func) == "super":
            self._call_own(f"super.{name}", node)
            return
        touch = self.touch(base)
        self._waits(node, function)
        if touch is None:
            self.read(base)
            return
        self._inside(base)
        op = METHODS.get(name, Op.READ)
        key = literal(*node.args[:1]) if op is not Op.ADD else None
        inside = Touch(touch.state, touch.depth + 1, touch.key or key)
        self.emit(op, inside, node, guessed=name in AMBIGUOUS)

    def _inside(self, base: ast.AST) -> None:
        """Note what leads to the object of a method: `self.d[k].append(x)` reads `d` first."""
        is_own = isinstance(base, ast.Attribute) and self._is_self(base.value)
        if not is_own and not isinstance(base, ast.Name):
            self.read(base)

    def _waits(self, node: ast.Call, function: ast.Attribute) -> None:
        name = function.attr
        if name not in WAITS or (name == "join" and node.args):
            return
        lock = self.lock_of(function.value)
        is_given = isinstance(function.value, ast.Name)
        if lock not in {hold.lock for hold in self._holds}:
            self._stranger(name, node, guessed=is_given)

    def _stranger(self, name: str, node: ast.AST, *, guessed: bool = False) -> None:
        if self._holds:
            self.emit(Op.STRANGER, Touch(name), node, guessed=guessed)

    def _call_own(self, name: str, node: ast.AST) -> None:
        self.events.append(
            Event(Op.CALL, name, getattr(node, "lineno", 0), self._holds, self._path)
        )

    # -- binding --------------------------------------------------------------------------

    def bind(self, target: ast.AST, value: ast.AST | None, since: int) -> None:
        """Bind a target to a value that was read since that event."""
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for at, one in enumerate(target.elts):
                part = values[at] if len(values) == len(target.elts) else None
                self.bind(one, part if part is not None else value, since)
            return
        if isinstance(target, ast.Starred):
            target = target.value
        touch = None if isinstance(target, ast.Name) else self.touch(target)
        if isinstance(target, ast.Name):
            self._bind_name(target, value, since)
        elif touch is None:
            if isinstance(target, ast.Subscript) and self._is_self(target.value):
                self._call_own("__setitem__", target)
        elif touch.depth:
            self._lead(target)
            self.emit(Op.ADD, touch, target)
        else:
            self.emit(Op.WRITE, touch, target, clears=is_nothing(value))
            # What a local name still stands for is nobody else's from now on.
            self._aliases = {
                name: other for name, other in self._aliases.items() if other.state != touch.state
            }

    def _lead(self, target: ast.AST) -> None:
        """Note what leads to a place that is written: `self.d[k].n = 1` reads `d` first."""
        if isinstance(target, ast.Subscript):
            self.read(target.slice)
        if isinstance(target, ast.Subscript | ast.Attribute):
            inner = self.touch(target.value)
            if inner is not None and inner.depth and not isinstance(target.value, ast.Name):
                self.read(target.value)

    def _bind_name(self, target: ast.Name, value: ast.AST | None, since: int) -> None:
        name = target.id
        if name in self.known.module_names and name not in self.known.locals:
            touch = Touch(GLOBAL + name)
            self.emit(Op.WRITE, touch, target, clears=is_nothing(value))
            return
        self._aliases.pop(name, None)
        self._locks.pop(name, None)
        self._origins[name] = frozenset(
            event.state for event in self.events[since:] if event.op is not Op.CALL
        )
        if value is None:
            return
        lock = self.lock_of(value)
        if lock is not None:
            self._locks[name] = lock
            return
        touched = self.touch(value)
        if touched is not None:
            self._aliases[name] = touched


def _deeper(touch: Touch | None, key: str | None) -> Touch | None:
    return None if touch is None else Touch(touch.state, touch.depth + 1, touch.key or key)
