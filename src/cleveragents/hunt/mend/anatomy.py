"""What a class, or a module, is made of, as far as a lock is concerned: who touches what.

`Body` stands for both: the methods of a class share `self`, the functions of a module globals.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import libcst as cst
import libcst.matchers as m

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "Body",
    "CannotMend",
    "Part",
    "Strangers",
    "body_of",
    "is_clock",
    "loop_names",
    "names_in",
    "parts_of",
]

#: Run before anybody can share the object, or after nobody does.
_ALONE: Final = frozenset(
    {"__init__", "__new__", "__post_init__", "__init_subclass__", "__del__", "__class_getitem__"}
    | {"__getstate__", "__setstate__", "__reduce__", "__copy__", "__deepcopy__", "__set_name__"}
)
#: A stored callable of such a name tells the time and calls nobody back.
_CLOCKS: Final = ("clock", "now", "time", "timer", "monotonic")
#: Methods of foreign objects that wait.
_WAITS: Final = frozenset({"wait", "wait_for", "sleep", "result", "recv", "accept"})


class CannotMend(Exception):  # noqa: N818  # names what happened: no fix can be offered
    """No change is known that keeps the code's behaviour; the message says why."""


@dataclass(frozen=True, slots=True)
class Strangers:
    """Whom a function calls that it does not know, or waits for; the lock must not be held then."""

    me: str
    #: What it was handed, and what its loops hand it.
    handed: frozenset[str]
    #: Attributes that hold what somebody handed in.
    given: frozenset[str]
    #: To wait for the lock's own condition lets go of it.
    lock: str

    @classmethod
    def of(cls, function: cst.FunctionDef, me: str, given: frozenset[str], lock: str) -> Strangers:
        """Return those of a function."""
        first = set() if me else {_first_parameter(function)}
        handed = _parameters(function) | first | loop_names(function)
        return cls(me, frozenset(handed), given, lock)

    def within(self, node: cst.CSTNode) -> Iterator[str]:
        """Yield why the lock must not be held in a piece of the function."""
        for call in m.findall(node, m.Call()):
            func = cst.ensure_type(call, cst.Call).func
            if isinstance(func, cst.Name):
                if func.value in self.handed:
                    yield f"it calls `{func.value}`, which it was given"
                elif func.value == "sleep":
                    yield "it waits in `sleep`"
            elif isinstance(func, cst.Attribute):
                yield from self._called_on(func)

    def _called_on(self, func: cst.Attribute) -> Iterator[str]:
        name = func.attr.value
        if m.matches(func.value, m.Name(self.me)) and name in self.given and not is_clock(name):
            yield f"it calls `{self.me}.{name}`, which it was given"
        elif name in _WAITS and not m.matches(func.value, m.Attribute(attr=m.Name(self.lock))):
            yield f"it waits in `{name}`"


@dataclass(frozen=True, slots=True)
class Part:
    """A method or function: what it touches, and what must not happen under a lock in it."""

    name: str
    node: cst.FunctionDef
    #: What it calls the object: `self`, `cls`; empty in a module.
    me: str
    touches: bool
    #: Other parts of the body that it uses, and whether each is called or only named.
    calls: frozenset[str]
    names: frozenset[str]
    strangers: Strangers
    #: Why it must not run under a lock as a whole; empty where it may.
    stranger: str = ""
    is_property: bool = False
    is_setter: bool = False

    @property
    def is_private(self) -> bool:
        """Say whether only its own body is meant to call it."""
        return self.name.startswith("_") and not self.name.startswith("__")


@dataclass(frozen=True, slots=True)
class Body:
    """A class or module with its parts, and the names of the state to guard."""

    owner: str | None
    state: frozenset[str]
    parts: Mapping[str, Part] = field(default_factory=dict)

    def touching(self) -> frozenset[str]:
        """Return the parts that come to touch the state, by themselves or by what they call."""
        found = {name for name, part in self.parts.items() if part.touches}
        grown = True
        while grown:
            more = {name for name, part in self.parts.items() if part.calls & found} - found
            grown = bool(more)
            found |= more
        return frozenset(found)

    def doors(self) -> frozenset[str]:
        """Return the parts that strangers call: each of them has to take the lock."""
        called = {name for part in self.parts.values() for name in part.calls}
        named = {name for part in self.parts.values() for name in part.names}
        touching = self.touching()
        return frozenset(
            name
            for name, part in self.parts.items()
            if name in touching
            and part.name not in _ALONE
            and (not part.is_private or name in named or name not in called)
        )


def body_of(tree: cst.Module, owner: str | None) -> Sequence[cst.CSTNode]:
    """Return the statements of a class by its qualified name, or those of the module."""
    statements: Sequence[cst.CSTNode] = tree.body
    for name in owner.split(".") if owner else ():
        found = [
            one for one in statements if isinstance(one, cst.ClassDef) and one.name.value == name
        ]
        if not found:
            raise CannotMend(f"`{owner}` is not at the top of its file")
        statements = found[-1].body.body
    return statements


def parts_of(tree: cst.Module, owner: str | None, state: frozenset[str], lock: str) -> Body:
    """Read a class or module; the lock is the one that it has, or is to have."""
    statements = body_of(tree, owner)
    functions = [one for one in statements if isinstance(one, cst.FunctionDef)]
    known = frozenset(_key(one) for one in functions)
    ground = _Ground(owner, state, known, frozenset(_given(statements)), lock)
    parts = {_key(one): _part(one, ground) for one in functions}
    read = frozenset(name for name, part in parts.items() if part.is_property)
    # To name a property is to call it.
    used = {
        name: replace(part, calls=part.calls | (part.names & read), names=part.names - read)
        for name, part in parts.items()
    }
    return Body(owner, state, used)


def _given(statements: Sequence[cst.CSTNode]) -> Iterator[str]:
    """Yield the attributes that hold what a caller handed in, or that are declared callable."""
    for statement in statements:
        if isinstance(statement, cst.FunctionDef):
            handed = _parameters(statement)
            for assign in m.findall(statement.body, m.Assign() | m.AnnAssign()):
                value = getattr(assign, "value", None)
                names = names_in(value) if value is not None else set()
                if names & handed:
                    for target in m.findall(assign, m.Attribute(value=m.Name())):
                        yield cst.ensure_type(target, cst.Attribute).attr.value
            continue
        for declared in m.findall(statement, m.AnnAssign(target=m.Name())):
            annotated = cst.ensure_type(declared, cst.AnnAssign)
            if m.findall(annotated.annotation, m.Name("Callable")):
                yield cst.ensure_type(annotated.target, cst.Name).value


def _parameters(function: cst.FunctionDef) -> set[str]:
    """Return the names of the parameters but the first, which is the object itself."""
    found = [cst.ensure_type(one, cst.Param) for one in m.findall(function.params, m.Param())]
    return {one.name.value for one in found} - {_first_parameter(function)}


def _key(function: cst.FunctionDef) -> str:
    """Return the name, that of a setter apart: a property and its setter have one."""
    return f"{function.name.value}=" if _has_decorator(function, "setter") else function.name.value


@dataclass(frozen=True, slots=True)
class _Ground:
    """What is the same for all parts of one body."""

    owner: str | None
    state: frozenset[str]
    known: frozenset[str]
    given: frozenset[str]
    lock: str


def _part(function: cst.FunctionDef, ground: _Ground) -> Part:
    me = _first_parameter(function) if ground.owner else ""
    reader = _Reader(me, ground.owner, ground.state, ground.known)
    function.body.visit(reader)
    if function.asynchronous is not None:
        reader.strangers.insert(0, "it is a coroutine")
    if _has_decorator(function, "contextmanager"):
        reader.strangers.insert(0, "it hands control back in its middle")
    strangers = Strangers.of(function, me, ground.given - ground.known, ground.lock)
    return Part(
        name=function.name.value,
        node=function,
        me=me,
        touches=reader.touches,
        calls=frozenset(reader.called),
        names=frozenset(reader.named - reader.called),
        strangers=strangers,
        stranger=next(iter([*reader.strangers, *strangers.within(function.body)]), ""),
        is_property=any(_has_decorator(function, one) for one in ("property", "cached_property")),
        is_setter=_has_decorator(function, "setter"),
    )


def _first_parameter(function: cst.FunctionDef) -> str:
    if _has_decorator(function, "staticmethod"):
        return ""
    parameters = (*function.params.posonly_params, *function.params.params)
    return parameters[0].name.value if parameters else ""


def _has_decorator(function: cst.FunctionDef, name: str) -> bool:
    for one in function.decorators:
        node = one.decorator.func if isinstance(one.decorator, cst.Call) else one.decorator
        last = node.attr if isinstance(node, cst.Attribute) else node
        if isinstance(last, cst.Name) and last.value == name:
            return True
    return False


class _Reader(cst.CSTVisitor):
    """Looks through the body of one function."""

    def __init__(
        self, me: str, owner: str | None, state: frozenset[str], known: frozenset[str]
    ) -> None:
        self._me = me
        self._class = (owner or "").rpartition(".")[2]
        self._state = state
        self._known = known
        self.touches = False
        self.called: set[str] = set()
        self.named: set[str] = set()
        self.strangers: list[str] = []

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if isinstance(node.value, cst.Name) and node.value.value in {self._me, self._class} - {""}:
            self._see(node.attr.value)
        return True

    def visit_Name(self, node: cst.Name) -> bool:
        if not self._me and not self._class:
            self._see(node.value)
        return True

    def visit_Call(self, node: cst.Call) -> bool:
        name = _called(node.func, self._me)
        if name in self._known:
            self.called.add(name)
        return True

    def visit_Await(self, _: cst.Await) -> bool:
        self.strangers.append("it awaits")
        return True

    def visit_Yield(self, _: cst.Yield) -> bool:
        self.strangers.append("it is a generator")
        return True

    def _see(self, name: str) -> None:
        self.touches = self.touches or name in self._state
        if name in self._known:
            self.named.add(name)


def _called(func: cst.BaseExpression, me: str) -> str:
    """Return the name of the own part that an expression calls, or nothing."""
    if me and m.matches(func, m.Attribute(value=m.Name(me))):
        return cst.ensure_type(func, cst.Attribute).attr.value
    return func.value if not me and isinstance(func, cst.Name) else ""


def names_in(node: cst.CSTNode) -> set[str]:
    """Return every name that stands in a piece of code."""
    return {cst.ensure_type(one, cst.Name).value for one in m.findall(node, m.Name())}


def loop_names(function: cst.FunctionDef) -> set[str]:
    """Return what loops of a function call their items."""
    targets = [
        *(cst.ensure_type(one, cst.For).target for one in m.findall(function.body, m.For())),
        *(
            cst.ensure_type(one, cst.CompFor).target
            for one in m.findall(function.body, m.CompFor())
        ),
    ]
    return {name for target in targets for name in names_in(target)}


def is_clock(name: str) -> bool:
    """Say whether a stored callable only tells the time."""
    return name.strip("_").endswith(_CLOCKS)
