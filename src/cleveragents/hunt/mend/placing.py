"""Makes the lock where the state is made, so that whoever reads one finds the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst
import libcst.matchers as m

from cleveragents.hunt.mend.guarding import statements_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["is_class_state", "lock_name", "with_lock_in_class", "with_lock_in_module"]

_PLAIN_BASES: Final = frozenset({"object", "ABC", "Generic", "Protocol"})
_SUPER: Final = m.SimpleStatementLine(
    [m.Expr(m.Call(m.Attribute(m.Call(m.Name("super")), m.Name("__init__"))))]
)


def lock_name(taken: frozenset[str], state: Sequence[str]) -> str:
    """Return a name for the lock that nothing else has."""
    for name in ("_lock", f"_{state[0].strip('_')}_lock"):
        if name not in taken:
            return name
    return f"_{state[0].strip('_')}_guard"


def with_lock_in_module(
    statements: Sequence[cst.BaseStatement], state: frozenset[str], lock: str
) -> list[cst.BaseStatement]:
    """Return the statements of a module with the lock before the first of the state."""
    at = next(
        (
            index
            for index, one in enumerate(statements)
            if isinstance(one, cst.SimpleStatementLine) and _assigns(one, state, "")
        ),
        None,
    )
    if at is None:
        at = next(
            (
                index
                for index, one in enumerate(statements)
                if isinstance(one, cst.FunctionDef | cst.ClassDef)
            ),
            len(statements),
        )
    line, after = _made(lock, "", state), list(statements[at:])
    if after and isinstance(after[0], cst.SimpleStatementLine):
        # The lock takes over the distance to what stands above.
        lines = after[0].leading_lines
        above = next((n for n, one in enumerate(lines) if one.comment is not None), len(lines))
        line = line.with_changes(leading_lines=lines[:above])
        after[0] = after[0].with_changes(leading_lines=lines[above:])
    return [*statements[:at], line, *after]


def is_class_state(target: cst.ClassDef, state: frozenset[str]) -> bool:
    """Say whether all objects of a class share the state."""
    if _is_dataclass(target):
        return False
    in_body = [one for one in target.body.body if isinstance(one, cst.SimpleStatementLine)]
    in_class = any(_assigns(one, state, "") for one in in_body)
    return in_class and not any(
        _assigns(line, state, "self")
        for function in target.body.body
        if isinstance(function, cst.FunctionDef) and function.name.value == "__init__"
        for line in statements_of(function)[1]
        if isinstance(line, cst.SimpleStatementLine)
    )


def with_lock_in_class(target: cst.ClassDef, state: frozenset[str], lock: str) -> cst.ClassDef:
    """Return the class with the lock made where its state is."""
    statements = [
        _with_slot(one, lock) for one in target.body.body if isinstance(one, cst.BaseStatement)
    ]
    head = 1 if target.get_docstring() is not None else 0
    if is_class_state(target, state):
        line = _made(lock, "", state)
        statements.insert(head, line)
    elif _is_dataclass(target):
        last = max(
            (at for at, one in enumerate(statements) if m.matches(one, _A_FIELD)), default=head - 1
        )
        statements.insert(last + 1, cst.parse_statement(_field_text(lock)))
    else:
        statements = _with_lock_in_init(target, statements, state, lock)
    return target.with_changes(body=target.body.with_changes(body=statements))


_A_FIELD: Final = m.SimpleStatementLine([m.AnnAssign()])


def _field_text(lock: str) -> str:
    options = "default_factory=threading.Lock, init=False, repr=False, compare=False"
    return f"{lock}: threading.Lock = dataclasses.field(\n    {options}\n)"


def _with_lock_in_init(
    target: cst.ClassDef, statements: list[cst.BaseStatement], state: frozenset[str], lock: str
) -> list[cst.BaseStatement]:
    for at, one in enumerate(statements):
        if isinstance(one, cst.FunctionDef) and one.name.value == "__init__":
            statements[at] = _with_lock_in_body(one, state, lock)
            return statements
    bases = {one.value.value for one in target.bases if isinstance(one.value, cst.Name)} | {
        "other" for one in target.bases if not isinstance(one.value, cst.Name)
    }
    text = f"def __init__(self) -> None:\n    self.{lock} = threading.Lock()"
    if bases - _PLAIN_BASES:
        text = (
            "def __init__(self, *args, **kwargs):\n"
            "    super().__init__(*args, **kwargs)\n"
            f"    self.{lock} = threading.Lock()"
        )
    at = next(
        (at for at, one in enumerate(statements) if isinstance(one, cst.FunctionDef)),
        len(statements),
    )
    statements.insert(at, cst.parse_statement(f"\n{text}\n"))
    if at + 1 < len(statements):
        after = statements[at + 1]
        lines = [cst.EmptyLine(indent=False), *getattr(after, "leading_lines", ())]
        statements[at + 1] = after.with_changes(leading_lines=lines)
    return statements


def _with_lock_in_body(init: cst.FunctionDef, state: frozenset[str], lock: str) -> cst.FunctionDef:
    """Put the lock before the first of the state, or first of all where others are called."""
    head, rest = statements_of(init)
    parameters = (*init.params.posonly_params, *init.params.params)
    me = parameters[0].name.value
    at = 1 if rest and m.matches(rest[0], _SUPER) else 0
    for index, one in enumerate(rest):
        if isinstance(one, cst.SimpleStatementLine) and _assigns(one, state, me):
            at = index
            break
        if m.findall(one, m.Call(m.Attribute(m.Name(me)))):
            break
    line = _made(lock, me, state)
    return init.with_changes(body=cst.IndentedBlock([*head, *rest[:at], line, *rest[at:]]))


def _with_slot(statement: cst.BaseStatement, lock: str) -> cst.BaseStatement:
    slots = m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Name("__slots__"))])])
    if not m.matches(statement, slots):
        return statement
    line = cst.ensure_type(statement, cst.SimpleStatementLine)
    assign = cst.ensure_type(line.body[0], cst.Assign)
    name = cst.SimpleString(f'"{lock}"')
    if isinstance(assign.value, cst.Tuple | cst.List | cst.Set):
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        before = [one.with_changes(comma=comma) for one in assign.value.elements]
        value: cst.BaseExpression = assign.value.with_changes(elements=[*before, cst.Element(name)])
    else:
        value = cst.Tuple([cst.Element(assign.value), cst.Element(name)])
    return line.with_changes(body=[assign.with_changes(value=value)])


def _is_dataclass(target: cst.ClassDef) -> bool:
    for one in target.decorators:
        node = one.decorator.func if isinstance(one.decorator, cst.Call) else one.decorator
        last = node.attr if isinstance(node, cst.Attribute) else node
        if isinstance(last, cst.Name) and last.value == "dataclass":
            return True
    return False


def _assigns(line: cst.SimpleStatementLine, state: frozenset[str], me: str) -> bool:
    """Say whether a line gives one of the names its first value."""
    for one in line.body:
        if not isinstance(one, cst.Assign | cst.AnnAssign):
            continue
        targets = (
            [each.target for each in one.targets] if isinstance(one, cst.Assign) else [one.target]
        )
        for target in targets:
            if me and m.matches(target, m.Attribute(value=m.Name(me))):
                if cst.ensure_type(target, cst.Attribute).attr.value in state:
                    return True
            elif not me and isinstance(target, cst.Name) and target.value in state:
                return True
    return False


def _made(lock: str, me: str, state: frozenset[str]) -> cst.SimpleStatementLine:
    name = f"{me}.{lock}" if me else lock
    guards = ", ".join(sorted(state))
    made = cst.parse_statement(f"{name} = threading.Lock()  # guards: {guards}")
    return cst.ensure_type(made, cst.SimpleStatementLine)
