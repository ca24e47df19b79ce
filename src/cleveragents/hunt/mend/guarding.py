"""Puts the lock around bodies: whole ones, or around a stranger's call where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst
import libcst.matchers as m

from cleveragents.hunt.mend.anatomy import CannotMend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cleveragents.hunt.mend.anatomy import Part

__all__ = ["LockedTwins", "WithoutLock", "around_strangers", "lock_of", "statements_of", "wrapped"]

Statement = cst.BaseStatement


def lock_of(me: str, lock: str) -> cst.BaseExpression:
    """Return the expression that names the lock: `self._lock`, or `_lock` in a module."""
    return cst.Attribute(cst.Name(me), cst.Name(lock)) if me else cst.Name(lock)


def statements_of(function: cst.FunctionDef) -> tuple[list[Statement], list[Statement]]:
    """Return the docstring, if there is one, and the statements after it."""
    if isinstance(function.body, cst.SimpleStatementSuite):
        return [], [cst.SimpleStatementLine(function.body.body)]
    statements = list(cst.ensure_type(function.body, cst.IndentedBlock).body)
    head = 1 if statements and function.get_docstring() is not None else 0
    return statements[:head], statements[head:]


def wrapped(statements: Sequence[Statement], lock: cst.BaseExpression) -> cst.With:
    """Return the statements under the lock."""
    return cst.With(items=[cst.WithItem(lock)], body=cst.IndentedBlock(list(statements)))


def guarded(part: Part, lock: str) -> cst.FunctionDef:
    """Return the function with its whole body under the lock."""
    head, rest = statements_of(part.node)
    if not rest:
        return part.node
    body = [*head, wrapped(rest, lock_of(part.me, lock))]
    return part.node.with_changes(body=cst.IndentedBlock(body))


class WithoutLock(cst.CSTTransformer):
    """Takes `with <lock>:` away and keeps what stood under it: the whole body has the lock now.

    Locks that a call makes for itself go with it; their making is left out too.
    """

    def __init__(self, me: str, lock: str) -> None:
        self._lock = lock_of(me, lock)
        self._own: set[str] = set()

    def leave_With(
        self, original: cst.With, updated: cst.With
    ) -> cst.With | cst.FlattenSentinel[cst.BaseStatement]:
        """Replace a block under the lock by what stands in it."""
        kept = [one for one in updated.items if not self._is_lock(one.item)]
        if len(kept) == len(updated.items):
            return updated
        if kept:
            last = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            return updated.with_changes(items=[*kept[:-1], last])
        return cst.FlattenSentinel(list(_own_lines(updated)))

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        """Leave out the line that makes a lock for one call."""
        made = m.extract(
            updated,
            m.SimpleStatementLine(
                [
                    m.Assign(
                        [m.AssignTarget(m.Name(value=m.SaveMatchedNode(m.DoNotCare(), "name")))],
                        _A_LOCK,
                    )
                ]
            ),
        )
        return updated if made is None else cst.RemovalSentinel.REMOVE

    def visit_Assign(self, node: cst.Assign) -> bool:
        """Remember the locks that a call makes for itself."""
        if m.matches(node.value, _A_LOCK) and m.matches(node.targets[0].target, m.Name()):
            self._own.add(cst.ensure_type(node.targets[0].target, cst.Name).value)
        return True

    def _is_lock(self, item: cst.BaseExpression) -> bool:
        own = isinstance(item, cst.Name) and item.value in self._own
        made = m.matches(item, _A_LOCK)
        return own or made or item.deep_equals(self._lock)


_A_LOCK: Final = m.Call(
    func=m.Name("Lock") | m.Name("RLock") | m.Attribute(attr=m.Name("Lock") | m.Name("RLock"))
)


def _own_lines(block: cst.With) -> Iterable[Statement]:
    """Return the statements of a block, the first with the comments that stood before the block."""
    if isinstance(block.body, cst.SimpleStatementSuite):
        yield cst.SimpleStatementLine(block.body.body, leading_lines=block.leading_lines)
        return
    first, *rest = cst.ensure_type(block.body, cst.IndentedBlock).body
    before = [*block.leading_lines, *getattr(first, "leading_lines", ())]
    yield first.with_changes(leading_lines=before)
    yield from rest


class LockedTwins(cst.CSTTransformer):
    """Lets what runs under the lock call the twins that expect it: no lock is taken twice."""

    def __init__(self, me: str, twins: dict[str, Part]) -> None:
        self._me = me
        self._twins = twins

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call:
        """Call the twin instead of the door."""
        name = self._name(original.func)
        if name in self._twins and not self._twins[name].is_property:
            return updated.with_changes(func=self._twin(name))
        return updated

    def leave_Attribute(
        self, original: cst.Attribute, updated: cst.Attribute
    ) -> cst.BaseExpression:
        """Call the twin instead of reading the property."""
        name = self._name(original)
        if name in self._twins and self._twins[name].is_property:
            return cst.Call(self._twin(name))
        return updated

    def visit_AssignTarget(self, node: cst.AssignTarget) -> bool:
        """Refuse to set a property that takes the lock."""
        name = self._name(node.target)
        if name in self._twins and self._twins[name].is_property:
            raise CannotMend(f"`{name}` is set under the lock that it takes")
        return True

    def _name(self, node: cst.BaseExpression) -> str:
        if self._me:
            own = m.matches(node, m.Attribute(value=m.Name(self._me)))
            return cst.ensure_type(node, cst.Attribute).attr.value if own else ""
        return node.value if isinstance(node, cst.Name) else ""

    def _twin(self, name: str) -> cst.BaseExpression:
        return lock_of(self._me, twin_name(name))


def twin_name(name: str) -> str:
    """Return what the part that expects the lock is called."""
    return f"_{name.strip('_')}_locked"


def twin_and_door(part: Part, lock: str) -> tuple[cst.FunctionDef, cst.FunctionDef]:
    """Split a part: the twin has its body and expects the lock, the door takes it."""
    head, _ = statements_of(part.node)
    twin = part.node.with_changes(
        name=cst.Name(twin_name(part.name)),
        decorators=[one for one in part.node.decorators if not _is_property(one)],
        leading_lines=[cst.EmptyLine(indent=False)],
        body=cst.IndentedBlock(statements_of(part.node)[1]),
    )
    call = cst.Call(lock_of(part.me, twin_name(part.name)), args=list(_arguments(part)))
    under = wrapped([cst.SimpleStatementLine([cst.Return(call)])], lock_of(part.me, lock))
    return twin, part.node.with_changes(body=cst.IndentedBlock([*head, under]))


def _is_property(decorator: cst.Decorator) -> bool:
    return m.matches(decorator.decorator, m.Name("property") | m.Name("cached_property"))


def _arguments(part: Part) -> Iterable[cst.Arg]:
    given = part.node.params
    ordinary = [*given.posonly_params, *given.params]
    for one in ordinary[1:] if part.me else ordinary:
        yield cst.Arg(one.name)
    if isinstance(given.star_arg, cst.Param):
        yield cst.Arg(given.star_arg.name, star="*")
    for one in given.kwonly_params:
        yield cst.Arg(
            one.name,
            keyword=one.name,
            equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
        )
    if given.star_kwarg is not None:
        yield cst.Arg(given.star_kwarg.name, star="**")


def around_strangers(
    part: Part,
    lock: str,
    is_strange: Callable[[cst.CSTNode], bool],
    touches: Callable[[cst.CSTNode], bool],
) -> cst.FunctionDef:
    """Return the function with the lock around all but the strangers' calls.

    A loop over the state that calls strangers goes over a copy; what is missing is made without
    the lock and put in place under it, if it is still missing then.
    """
    head, rest = statements_of(part.node)
    lock_name = lock_of(part.me, lock)
    made: list[Statement] = []
    kept: list[Statement] = []

    def close() -> None:
        if any(touches(one) for one in kept):
            made.append(wrapped(kept, lock_name))
        else:
            made.extend(kept)
        kept.clear()

    for statement in rest:
        if not is_strange(statement):
            kept.append(statement)
            continue
        close()
        made.extend(_without_stranger(statement, lock_name, touches, is_strange))
    close()
    return part.node.with_changes(body=cst.IndentedBlock([*head, *made]))


def _without_stranger(
    statement: Statement,
    lock: cst.BaseExpression,
    touches: Callable[[cst.CSTNode], bool],
    is_strange: Callable[[cst.CSTNode], bool],
) -> Iterable[Statement]:
    if not touches(statement):
        return [statement]
    if isinstance(statement, cst.For) and not touches(statement.body):
        copied = cst.Call(cst.Name("list"), [cst.Arg(statement.iter)])
        kept = _assigned("items", copied)
        return [
            wrapped([kept], lock).with_changes(leading_lines=statement.leading_lines),
            statement.with_changes(iter=cst.Name("items"), leading_lines=[]),
        ]
    if (
        isinstance(statement, cst.If)
        and statement.orelse is None
        and not is_strange(statement.test)
    ):
        return _filled_in(statement, lock)
    if m.matches(statement, m.SimpleStatementLine([m.Assign()])):
        assign = cst.ensure_type(
            cst.ensure_type(statement, cst.SimpleStatementLine).body[0], cst.Assign
        )
        if not touches(assign.value):
            put = assign.with_changes(value=cst.Name("value"))
            under = wrapped([cst.SimpleStatementLine([put])], lock)
            return [_assigned("value", assign.value), under]
    raise CannotMend("a stranger is called in the middle of what must not be interrupted")


def _filled_in(statement: cst.If, lock: cst.BaseExpression) -> list[Statement]:
    """`if missing: state = make()` becomes: look, make outside, put in place if still missing."""
    block = statement.body.body
    made = block[-1]
    only = m.SimpleStatementLine([m.Assign(targets=[m.DoNotCare()])])
    if len(block) != 1 or not m.matches(made, only):
        raise CannotMend("a stranger is called in the middle of what must not be interrupted")
    assign = cst.ensure_type(cst.ensure_type(made, cst.SimpleStatementLine).body[0], cst.Assign)
    look = wrapped([_assigned("missing", statement.test)], lock)
    put = statement.with_changes(
        leading_lines=[],
        body=cst.IndentedBlock(
            [cst.SimpleStatementLine([assign.with_changes(value=cst.Name("value"))])]
        ),
    )
    make = [_assigned("value", assign.value), wrapped([put], lock)]
    return [
        look.with_changes(leading_lines=statement.leading_lines),
        cst.If(cst.Name("missing"), cst.IndentedBlock(make)),
    ]


def _assigned(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])
