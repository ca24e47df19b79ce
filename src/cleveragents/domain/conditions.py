"""References, templates and conditions: the small language in which nodes speak of each other.

A *reference* is a dotted name: `nodes.NAME.output`, followed by keys or positions (`.count`, `.0`),
`inputs.NAME`, `plan.goal`, `plan.name`, or the name of a fan-out's item.
A *template* is text with `${reference}` in it; `$${` stands for a plain `${`.
A *condition* compares: `nodes.scan.output.count > 3 and "api" in inputs.parts`.

A scope gives the values: `{"nodes": {name: output}, "inputs": {…}, "plan": {…}, "item": …}`.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Condition", "Reference", "Template", "as_meant", "as_written", "did_you_mean"]

CONDITION_CHARS_MAX: Final = 1_000
# Looking for a close word among thousands takes longer than a suggestion is worth.
_LOOKED_AT_MAX: Final = 500

_REFERENCE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_PIECE: Final = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}|(\$\{)")
# There is no arithmetic, so a hyphen inside a word belongs to it: `nodes.split-auth.output`.
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\\n]|\\[\\"'nt])*"|'(?:[^'\\\n]|\\[\\"'nt])*')
      | (?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]))
      | (?P<word>[A-Za-z_][A-Za-z0-9_.-]*)
      | (?P<sign>==|!=|<=|>=|[<>()\[\],-])
    )""",
    re.VERBOSE,
)
_OPERATOR_WORDS: Final = frozenset({"and", "or", "not", "in"})
_CONSTANTS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a value comes from; `node` is set when it is the output of one."""

    text: str
    root: str
    node: str | None
    keys: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read a dotted name, or refuse it."""
        parts = text.split(".")
        if _REFERENCE.fullmatch(text) is None or (parts[0] != "nodes" and "" in parts):
            raise _refused(
                "A reference must be a dotted name such as `nodes.scan.output` or `inputs.path`,"
                f" got {text!r}"
            )
        if parts[0] != "nodes":
            return cls(text, parts[0], None, tuple(parts[1:]))
        # Names may hold dots; no name has a later part `output`, so the first one ends the name.
        end = next((at for at, part in enumerate(parts) if at > 1 and part == "output"), None)
        if end is None or "" in parts[end:]:
            raise _refused(
                "A reference to a node must read `nodes.NAME.output`, then keys if there are any,"
                f" got {text!r}"
            )
        return cls(text, "nodes", ".".join(parts[1:end]), tuple(parts[end + 1 :]))

    def value(self, scope: Mapping[str, Any]) -> Any:
        """Look the value up; what a skipped node did not give is null, all the way down."""
        names = scope.get(self.root, {}) if self.node is not None else scope
        name = self.root if self.node is None else self.node
        if name not in names:
            raise _refused(f"`{self.text}` has no value here, because `{name}` has none")
        value = names[name]
        for key in self.keys:
            value = _inside(value, key, self.text)
        return value


def as_written(value: Any) -> Any:
    """Return a value whose texts mean themselves in a plan, where `${` begins a template."""
    return _with_texts(value, "${", "$${")


def as_meant(value: Any) -> Any:
    """Return what `as_written` was given, in plain dictionaries and lists."""
    return _with_texts(value, "$${", "${")


def _with_texts(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, Mapping):
        return {key: _with_texts(one, old, new) for key, one in value.items()}
    return (
        [_with_texts(one, old, new) for one in value] if isinstance(value, list | tuple) else value
    )


@dataclass(frozen=True, slots=True)
class Template:
    """Text with references in it."""

    parts: tuple[str | Reference, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a template, or refuse it."""
        parts: list[str | Reference] = []
        end = 0
        for piece in _PIECE.finditer(text):
            if piece[3] is not None:
                raise _refused(
                    "A `${` must be closed by `}` and hold one dotted name; write `$${` for a plain"
                    " `${`"
                )
            before = text[end : piece.start()]
            parts += [before + piece[1]] if piece[1] else [before, Reference.parse(piece[2])]
            end = piece.end()
        return cls(tuple(part for part in (*parts, text[end:]) if part != ""))

    @property
    def references(self) -> tuple[Reference, ...]:
        """What the template needs, in the order in which it stands there."""
        return tuple(part for part in self.parts if isinstance(part, Reference))

    @property
    def sole(self) -> Reference | None:
        """The reference, when the template is one reference and nothing else."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only if isinstance(only, Reference) else None

    def render(self, scope: Mapping[str, Any]) -> Any:
        """Fill it in: a sole reference keeps its type, anything else becomes text."""
        if self.sole is not None:
            return self.sole.value(scope)
        return "".join(
            part if isinstance(part, str) else _as_text(part.value(scope)) for part in self.parts
        )


@dataclass(frozen=True, slots=True)
class Condition:
    """A question about inputs and outputs; what is not on the white list is refused at birth.

    It knows `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not`, `and`, `or`, parentheses, lists, text,
    numbers, `true`, `false`, `null` and references. Null, false, 0 and what is empty count as no.
    """

    text: str
    references: tuple[Reference, ...] = field(init=False, compare=False, repr=False)
    _tree: ast.expr = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        given: object = self.text
        if not isinstance(given, str) or len(given) > CONDITION_CHARS_MAX:
            raise _refused(f"A condition must be text of at most {CONDITION_CHARS_MAX} characters")
        code, references = _tokens(self.text)
        try:
            tree = ast.parse(code, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _refused(f"A condition must compare values, got {self.text!r}") from None
        _check(tree)
        object.__setattr__(self, "references", references)
        object.__setattr__(self, "_tree", tree)

    def holds(self, scope: Mapping[str, Any]) -> bool:
        """Answer the question for these values; values that cannot be compared are refused."""
        return bool(_value(self._tree, self.references, scope))


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return `; did you mean …?` when something known is close, else nothing."""
    import difflib

    close = difflib.get_close_matches(str(word), list(islice(known, _LOOKED_AT_MAX)), 1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _inside(value: Any, key: str, text: str) -> Any:
    if value is None:
        return None
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
        raise _refused(f"`{text}` has no value: there is no `{key}`{did_you_mean(key, value)}")
    if isinstance(value, list | tuple):
        if key.isdecimal() and int(key) < len(value):
            return value[int(key)]
        raise _refused(f"`{text}` has no value: a list of {len(value)} has no `{key}`")
    raise _refused(f"`{text}` has no value: {_kind(value)} has no `{key}`")


def _tokens(text: str) -> tuple[str, tuple[Reference, ...]]:
    """Return the condition with `_0`, `_1`, … in the place of references, and the references."""
    pieces: list[str] = []
    references: list[Reference] = []
    end, rest = 0, text.rstrip()
    while end < len(rest):
        token = _TOKEN.match(rest, end)
        if token is None:
            raise _refused(
                f"A condition must be made of comparisons, got {rest[end:].lstrip()[:20]!r}"
            )
        end, piece = token.end(), token[0].strip()
        if token["word"] and piece not in _OPERATOR_WORDS and piece not in _CONSTANTS:
            references.append(Reference.parse(piece))
            piece = f"_{len(references) - 1}"
        pieces.append(piece)
    return " ".join(pieces), tuple(references)


def _check(node: ast.expr) -> None:
    """Refuse whatever is not on the white list."""
    match node:
        case ast.BoolOp(values=parts) | ast.List(elts=parts):
            pass
        case ast.Compare(left=left, comparators=others):
            parts = [left, *others]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            parts = [operand]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            parts = []
        case ast.Constant(value=str() | int()) | ast.Name():
            parts = []
        case ast.Constant(value=float() as number) if math.isfinite(number):
            parts = []
        case _:
            raise _refused(
                "A condition knows comparisons, `in`, `not`, `and`, `or`, lists, text, numbers and"
                f" dotted names, got {_NAMES_OF_REFUSED.get(type(node), 'something else')}"
            )
    for part in parts:
        _check(part)


_NAMES_OF_REFUSED: Final[Mapping[type[ast.expr], str]] = {
    ast.Call: "a call",
    ast.Subscript: "brackets after a name; write `name.0` or `name.key`",
    ast.Tuple: "a tuple; write a list in brackets",
    ast.BinOp: "arithmetic",
    ast.UnaryOp: "a minus before something else than a number",
}


def _value(node: ast.expr, references: tuple[Reference, ...], scope: Mapping[str, Any]) -> Any:  # noqa: PLR0911  # one for each kind of expression
    def of(part: ast.expr) -> Any:
        return _value(part, references, scope)

    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(of(part) for part in parts)
        case ast.BoolOp(values=parts):
            return any(of(part) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not of(operand)
        case ast.UnaryOp(operand=operand):
            return -of(operand)
        case ast.Compare(left=first, ops=ops, comparators=others):
            pairs = zip([first, *others], ops, others, strict=False)
            return all(_compares(type(op), of(left), of(right)) for left, op, right in pairs)
        case ast.List(elts=parts):
            return [of(part) for part in parts]
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return (
                _CONSTANTS[name] if name in _CONSTANTS else references[int(name[1:])].value(scope)
            )
        case _:
            raise AssertionError("unreachable")


_ORDERS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _compares(kind: type[ast.cmpop], left: Any, right: Any) -> bool:
    if kind in {ast.Eq, ast.NotEq}:
        return _same(left, right) is (kind is ast.Eq)
    if kind in {ast.In, ast.NotIn}:
        return _holds(right, left) is (kind is ast.In)
    if not (_is_number(left) and _is_number(right)) and not (
        isinstance(left, str) and isinstance(right, str)
    ):
        raise _refused(
            f"A condition can order two numbers or two texts, got {_kind(left)} and {_kind(right)}"
        )
    return _ORDERS[kind](left, right)


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON values are: true is not 1, and a list is a list however it is kept."""
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right)


def _holds(container: Any, member: Any) -> bool:
    if isinstance(container, str) and isinstance(member, str):
        return member in container
    if isinstance(container, list | tuple | Mapping):
        return any(_same(member, one) for one in container)
    raise _refused(
        f"`in` needs a list, a mapping, or text in text, got {_kind(member)} in {_kind(container)}"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=dict)


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    kinds = {str: "text", int: "a number", float: "a number", list: "a list", tuple: "a list"}
    return kinds.get(type(value), "a mapping")


def _refused(message: str) -> RequestError:
    return RequestError(message, code="CA1101")
