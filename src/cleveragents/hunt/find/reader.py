"""Functions as events: branches, loops and locks around the expressions."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cleveragents.hunt.find.events import GLOBAL, Function, Op
from cleveragents.hunt.find.expressions import ExpressionReader, Known, Touch
from cleveragents.hunt.find.vocabulary import caller_locks, terminal, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["AnyFunction", "read_function"]

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
#: A handler for one of these makes the body of its `try` a test.
_MISSING: Final = frozenset({"KeyError", "IndexError", "AttributeError", "LookupError"})


def read_function(node: AnyFunction, around: Known) -> Function:
    """Read one function or method, with what is known of the names around it."""
    selves = around.selves
    parameters = frozenset(argument.arg for argument in _arguments(node))
    shared, bound = set[str](), set[str]()
    for one in walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            bound.add(one.id)
        elif isinstance(one, ast.Global):
            shared.update(one.names)
    decorators = frozenset(map(terminal, node.decorator_list))
    known = replace(
        around,
        module_names=around.module_names | shared,
        parameters=parameters - selves,
        locals=(parameters | bound) - shared - selves,
        is_context_manager="contextmanager" in decorators,
    )
    reader = _FunctionReader(known)
    if _remembers_what_it_makes(node, decorators):
        # Two first callers find nothing remembered and make one each.
        memory = Touch(f"{GLOBAL}{node.name}.cache", 1)
        reader.emit(Op.TEST, memory, node)
        reader.block(node.body)
        reader.emit(Op.ADD, memory, node)
    else:
        reader.block(node.body)
    docstring = ast.get_docstring(node, clean=False)
    return Function(
        name=node.name,
        line=node.lineno,
        events=tuple(reader.events),
        decorators=decorators,
        is_async=isinstance(node, ast.AsyncFunctionDef),
        tested=frozenset(reader.tested),
        lock_per_call=frozenset(reader.lock_per_call),
        caller_locks=caller_locks(node.name, docstring),
        returns=None if reader.returns is None else reader.returns[:2],
    )


def _remembers_what_it_makes(node: AnyFunction, decorators: frozenset[str]) -> bool:
    return not decorators.isdisjoint({"cache", "lru_cache"}) and any(
        isinstance(one, ast.Return)
        and isinstance(one.value, ast.Call)
        and terminal(one.value)[:1].isupper()
        for one in walk(node)
    )


def _arguments(node: AnyFunction) -> list[ast.arg]:
    every = node.args
    more = [one for one in (every.vararg, every.kwarg) if one is not None]
    return [*every.posonlyargs, *every.args, *every.kwonlyargs, *more]


class _FunctionReader(ExpressionReader):
    """Reads the statements of one function in the order of its source."""

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Read statements; after a branch whose one arm leaves, the rest is the other arm."""
        before = self._path
        self._run(body)
        self._path = before

    def _run(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            getattr(self, _STATEMENTS.get(type(statement), "_rest"))(statement)

    def _assign(self, node: ast.Assign) -> None:
        since = len(self.events)
        self.read(node.value)
        for target in node.targets:
            self.bind(target, node.value, since)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            since = len(self.events)
            self.read(node.value)
            self.bind(node.target, node.value, since)

    def _augmented(self, node: ast.AugAssign) -> None:
        self.read(node.value)
        if isinstance(node.target, ast.Name):
            touch = self.touch(node.target)
            if touch is None or node.target.id in self.known.locals:
                return
        if isinstance(node.target, ast.Subscript) and self._is_self(node.target.value):
            self._call_own("__getitem__", node)
        self._load(node.target)
        self.bind(node.target, None, len(self.events))

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            touch = self.touch(target)
            if touch is not None and not isinstance(target, ast.Name):
                self._lead(target)
                self.emit(Op.REMOVE if touch.depth else Op.WRITE, touch, target, clears=True)
            elif isinstance(target, ast.Subscript) and self._is_self(target.value):
                self._call_own("__delitem__", target)

    def _if(self, node: ast.If) -> None:
        self.test(node.test)
        self._arms([node.body, node.orelse])

    def _match(self, node: ast.Match) -> None:
        self.test(node.subject)
        self._arms([case.body for case in node.cases])

    def _arms(self, arms: Sequence[Sequence[ast.stmt]]) -> None:
        """Read the arms of one branch; what follows belongs to the one arm that goes on."""
        branch, path, holds = next(self._numbers), self._path, self._holds
        goes_on, after = [], holds
        for arm, body in enumerate(arms):
            self._path, self._holds = (*path, (branch, arm)), holds
            self.block(body)
            if not _leaves(body):
                goes_on.append(arm)
                after = self._holds if self._holds != holds else after
        self._holds = after
        self._path = (*path, (branch, goes_on[0])) if len(goes_on) == 1 else path

    def _while(self, node: ast.While) -> None:
        self.test(node.test)
        self.block(node.body)
        self.block(node.orelse)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.iterate(node.iter, node.target)
        self.block(node.body)
        self.block(node.orelse)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        taken: list[str] = []
        for item in node.items:
            lock = self.lock_of(item.context_expr)
            if lock is None or isinstance(node, ast.AsyncWith):
                self.read(item.context_expr)
                if item.optional_vars is not None:
                    self.bind(item.optional_vars, None, len(self.events))
            else:
                self.hold(lock)
                taken.append(lock)
        # An arm that leaves does so for what follows the block, too.
        self._run(node.body)
        for lock in taken:
            self.release(lock)

    def _try(self, node: ast.Try) -> None:
        before = self._catching
        self._catching = before or any(map(_catches_missing, node.handlers))
        self.block(node.body)
        self._catching = before
        holds = self._holds
        for handler in node.handlers:
            self._holds = holds
            self.block(handler.body)
        self._holds = holds
        self.block(node.orelse)
        self.block(node.finalbody)

    def _assert(self, node: ast.Assert) -> None:
        self.test(node.test)

    def _return(self, node: ast.Return) -> None:
        self.read(node.value)
        touch = None if node.value is None else self.touch(node.value)
        if touch is not None and (self.returns is None or touch.depth > self.returns.depth):
            self.returns = touch

    def _nested(self, node: AnyFunction) -> None:
        """Read a function inside: it runs later, when this function's locks are gone."""
        path, holds, own = self._path, self._holds, self._own_locks
        self._holds, self._own_locks = frozenset(), 0
        self.block(node.body)
        self._path, self._holds, self._own_locks = path, holds, own

    def _skip(self, _node: ast.stmt) -> None:
        """Pass over what touches no state when the function runs."""


def _leaves(body: Sequence[ast.stmt]) -> bool:
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _leaves(last.body) and _leaves(last.orelse)
    if isinstance(last, ast.With):
        return _leaves(last.body)
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    caught: Iterable[ast.AST] = ()
    if isinstance(handler.type, ast.Tuple):
        caught = handler.type.elts
    elif handler.type is not None:
        caught = [handler.type]
    return any(terminal(one) in _MISSING for one in caught)


#: The method that reads each kind of statement; of the others the expressions are read.
_STATEMENTS: Final[dict[type[ast.stmt], str]] = {
    ast.Assign: "_assign",
    ast.AnnAssign: "_annotated",
    ast.AugAssign: "_augmented",
    ast.Delete: "_delete",
    ast.If: "_if",
    ast.Match: "_match",
    ast.While: "_while",
    ast.For: "_for",
    ast.AsyncFor: "_for",
    ast.With: "_with",
    ast.AsyncWith: "_with",
    ast.Try: "_try",
    ast.TryStar: "_try",
    ast.Assert: "_assert",
    ast.Return: "_return",
    ast.FunctionDef: "_nested",
    ast.AsyncFunctionDef: "_nested",
    ast.ClassDef: "_skip",
    ast.Import: "_skip",
    ast.ImportFrom: "_skip",
    ast.Global: "_skip",
    ast.Nonlocal: "_skip",
}
