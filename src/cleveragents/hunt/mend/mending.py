"""From a candidate and its source to sources that may mend it; whether one does, a proof says."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst
import libcst.matchers as m
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor

from cleveragents.hunt.mend.anatomy import (
    CannotMend,
    body_of,
    names_in,
    parts_of,
)
from cleveragents.hunt.mend.guarding import (
    LockedTwins,
    WithoutLock,
    around_strangers,
    guarded,
    lock_of,
    statements_of,
    twin_and_door,
    twin_name,
)
from cleveragents.hunt.mend.placing import lock_name, with_lock_in_class, with_lock_in_module

if TYPE_CHECKING:
    from cleveragents.hunt.candidate import Candidate
    from cleveragents.hunt.mend.anatomy import Body, Part

__all__ = ["mended"]


def mended(source: str, candidate: Candidate) -> str:
    """Return the source with one lock held by every call that touches the state.

    The lock of the class is used when it has one. Raise `CannotMend` where no such change is known.
    """
    try:
        tree = cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise CannotMend("the file cannot be parsed") from error
    taken = frozenset(names_in(tree))
    lock = candidate.lock or lock_name(taken, candidate.state)
    body = parts_of(tree, candidate.owner, frozenset(candidate.state), lock)
    if not body.doors():
        raise CannotMend("nothing that can be called from outside touches the state")
    functions = _functions(body, lock, taken)
    changed = tree.visit(_Replacing(tree, candidate, functions, lock))
    if candidate.lock is None:
        changed = _with_imports(changed)
    text = changed.code
    if text == source:
        raise CannotMend("every call holds the lock already")
    return text


def _functions(
    body: Body, lock: str, taken: frozenset[str]
) -> dict[cst.FunctionDef, list[cst.FunctionDef]]:
    """Return what each function becomes: itself under the lock, or a door and its twin."""
    doors, touching = body.doors(), body.touching()
    under = {name: body.parts[name] for name in touching if body.parts[name].name not in _MAKERS}
    nested = {name for part in under.values() for name in part.calls | part.names if name in doors}
    twins = {name: body.parts[name] for name in sorted(nested)}
    for part in twins.values():
        if part.stranger:
            raise CannotMend(f"`{part.name}` is used under the lock, and {part.stranger}")
        if twin_name(part.name) in taken:
            raise CannotMend(f"the name `{twin_name(part.name)}` is taken")
    made: dict[cst.FunctionDef, list[cst.FunctionDef]] = {}
    for name, part in under.items():
        if name not in doors and part.stranger:
            raise CannotMend(f"`{part.name}` runs under the lock, and {part.stranger}")
        made[part.node] = _rewritten(part, body, lock, twins, is_door=name in doors)
    return made


_MAKERS = frozenset({"__init__", "__new__", "__post_init__", "__del__"})


def _rewritten(
    part: Part, body: Body, lock: str, twins: dict[str, Part], *, is_door: bool
) -> list[cst.FunctionDef]:
    key = f"{part.name}=" if part.is_setter else part.name
    uses_twin = bool((part.calls | part.names) & set(twins) - {key})
    if is_door and key not in twins and not uses_twin and _is_under(part, lock):
        return [part.node]
    free = cst.ensure_type(part.node.visit(WithoutLock(part.me, lock)), cst.FunctionDef)
    if part.stranger:
        own = replace(part, node=free)
        return [
            around_strangers(
                own, lock, partial(_is_strange, own), lambda one: _touches(one, part, body)
            )
        ]
    free = cst.ensure_type(free.visit(LockedTwins(part.me, twins)), cst.FunctionDef)
    if not is_door:
        return [free]
    if key in twins:
        twin, door = twin_and_door(replace(part, node=free), lock)
        return [door, twin]
    return [guarded(replace(part, node=free), lock)]


def _is_under(part: Part, lock: str) -> bool:
    """Say whether the whole body holds the lock as it stands."""
    _, rest = statements_of(part.node)
    return (
        len(rest) == 1
        and isinstance(rest[0], cst.With)
        and any(one.item.deep_equals(lock_of(part.me, lock)) for one in rest[0].items)
    )


def _is_strange(part: Part, node: cst.CSTNode) -> bool:
    """Say whether a piece of a function calls or waits for somebody whom the class cannot know."""
    if m.findall(node, m.Await() | m.Yield()):
        raise CannotMend(part.stranger)
    return any(part.strangers.within(node))


def _touches(node: cst.CSTNode, part: Part, body: Body) -> bool:
    if part.me:
        found = m.findall(node, m.Attribute(value=m.Name(part.me)))
        names = {cst.ensure_type(one, cst.Attribute).attr.value for one in found}
    else:
        names = names_in(node)
    return bool(names & body.state)


class _Replacing(cst.CSTTransformer):
    """Puts the new functions in place of the old, and the lock beside the state."""

    def __init__(
        self,
        tree: cst.Module,
        candidate: Candidate,
        functions: dict[cst.FunctionDef, list[cst.FunctionDef]],
        lock: str,
    ) -> None:
        body_of(tree, candidate.owner)
        self._path = candidate.owner.split(".") if candidate.owner else []
        self._state = frozenset(candidate.state)
        self._functions = functions
        self._lock = lock
        self._is_new = candidate.lock is None
        self._at: list[str] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self._at.append(node.name.value)
        return True

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef:
        here = self._at == self._path
        self._at.pop()
        if here and self._is_new:
            return with_lock_in_class(updated, self._state, self._lock)
        return updated

    def leave_FunctionDef(
        self, original: cst.FunctionDef, updated: cst.FunctionDef
    ) -> cst.FunctionDef | cst.FlattenSentinel[cst.BaseStatement]:
        made = self._functions.get(original)
        return updated if made is None else cst.FlattenSentinel(made)

    def leave_Module(self, original: cst.Module, updated: cst.Module) -> cst.Module:
        if self._path or not self._is_new:
            return updated
        return updated.with_changes(body=with_lock_in_module(updated.body, self._state, self._lock))


def _with_imports(tree: cst.Module) -> cst.Module:
    context = CodemodContext()
    for name in ("threading", "dataclasses"):
        if f"{name}." in tree.code:
            AddImportsVisitor.add_needed_import(context, name)
    return AddImportsVisitor(context).transform_module(tree)
