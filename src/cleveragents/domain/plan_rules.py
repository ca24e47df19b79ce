"""The rules for single values of a plan: each can read, write and describe itself.

One rule is the source of four things: what a plan refuses, what `dump` writes, what the JSON
Schema for editors says, and what the reference page says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from cleveragents.domain.conditions import (
    CONDITION_CHARS_MAX,
    Condition,
    Reference,
    Template,
    did_you_mean,
)
from cleveragents.domain.errors import PlanError, RequestError
from cleveragents.domain.money import AMOUNT_USD_MAX, Money
from cleveragents.domain.paths import check_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Where a value stands in a plan, such as `("nodes", "lint", "needs", 0)`.
At: TypeAlias = tuple[str | int, ...]
JsonSchema: TypeAlias = dict[str, Any]

MISTAKES_SHOWN_MAX: Final = 20
# A hostile file could have a hundred thousand, and looking for close words takes its time.
_MISTAKES_MAX: Final = 100
_SAYS_CHARS_MAX: Final = 2_000
_SHOWN_CHARS_MAX: Final = 80


@dataclass(frozen=True, slots=True)
class Mistake:
    """A rule that a plan breaks, and where; `on_key` is about the key instead of its value."""

    at: At
    says: str
    on_key: bool = False


class TooMany(Exception):  # noqa: N818  # ends a reading, and never leaves it
    """So many mistakes that the rest would tell nobody anything."""


class Findings:
    """Collects the mistakes of one reading, so that all of them are told together."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def add(self, at: At, says: str, *, on_key: bool = False) -> None:
        """Note a mistake; a rule returns None for what it could not read."""
        cut = says if len(says) <= _SAYS_CHARS_MAX else f"{says[:_SAYS_CHARS_MAX]}…"
        self.mistakes.append(Mistake(at, cut, on_key))
        if len(self.mistakes) >= _MISTAKES_MAX:
            raise TooMany

    def move(self, since: int, source: At, target: At) -> None:
        """Let later mistakes at one place be about the key of another."""
        for place, one in enumerate(self.mistakes[since:], since):
            if one.at == source:
                self.mistakes[place] = Mistake(target, one.says, on_key=True)

    def raise_if_any(self, what: str) -> None:
        """Refuse what was made in Python, with CA1101 and each mistake by its place."""
        if self.mistakes:
            told = [(spelled(one.at) or what, one.says) for one in self.mistakes]
            raise refusal(f"`{what}`", told)


def refusal(what: str, told: list[tuple[str, str]]) -> RequestError:
    """Return the error that tells up to 20 mistakes, each with its place."""
    facts: dict[str, str] = {}
    for where, says in told[:MISTAKES_SHOWN_MAX]:
        facts[where] = f"{facts[where]}; {says}" if where in facts else says
    if len(told) > MISTAKES_SHOWN_MAX:
        facts["more"] = f"{len(told) - MISTAKES_SHOWN_MAX} further mistakes"
    rules = "a rule" if len(told) == 1 else f"{len(told)} rules"
    first = told[0][1]
    return RequestError(f"{what} breaks {rules}: {first}", code="CA1101", facts=facts)


def spelled(at: At) -> str:
    """Spell a place as people do: `nodes.lint.needs[0]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at)
    return text.removeprefix(".")


def shown(value: object) -> str:
    """Show a value as the user wrote it, bounded."""
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


class Rule(Protocol):
    """What a value must be; `says` completes the sentence "must be …"."""

    says: str

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Return the value as the plan keeps it, or note the mistake and return None."""
        ...

    def schema(self) -> JsonSchema:
        """Return what JSON Schema can say of the rule; it never refuses what the rule accepts."""
        ...

    def plain(self, value: Any) -> Any:
        """Return the value as a file holds it."""
        return value

    def parts(self) -> tuple[Rule, ...]:
        """Return the rules of what is inside."""
        return ()

    def references(self, value: Any, at: At) -> Iterator[tuple[At, Reference]]:  # noqa: ARG002  # for rules that hold templates
        """Yield each reference to another value, with its place."""
        return iter(())

    def refuse(self, value: object, at: At, found: Findings, *, private: bool = False) -> None:
        """Note that a value breaks the rule; a private one is not shown."""
        got = type(value).__name__ if private else shown(value)
        found.add(at, f"`{_label(at)}` must be {self.says}, got {got}")


def _label(at: At) -> str:
    start = next((i for i in range(len(at) - 1, -1, -1) if isinstance(at[i], str)), 0)
    return spelled(at[start:]) or "plan"


class Text(Rule):
    """Text of a bounded length that says something."""

    def __init__(
        self,
        says: str = "text",
        *,
        chars_max: int = 10_000,
        pattern: str = "",
        private: bool = False,
    ) -> None:
        self.says = says
        self._chars_max = chars_max
        # Without a pattern there must be something else than blanks.
        self._pattern = pattern or r"^[^\0]*[^\0\s][^\0]*$"
        self._matches = re.compile(self._pattern.removesuffix("$") + r"\Z").match
        self._private = private

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take text as it is."""
        if isinstance(value, str) and len(value) <= self._chars_max and self._matches(value):
            return value
        return self.refuse(value, at, found, private=self._private)

    def schema(self) -> JsonSchema:
        """Return its length and pattern."""
        return {"type": "string", "maxLength": self._chars_max, "pattern": self._pattern}


#: Any text without NUL, also none.
ANY_TEXT: Final = r"^[^\0]*$"


class Templated(Text):
    """Text with `${references}` in it."""

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take text whose references can be read."""
        text = super().read(value, at, found)
        return None if text is None else read_template(text, at, found)

    def references(self, value: Any, at: At) -> Iterator[tuple[At, Reference]]:
        """Yield the references in the text."""
        return ((at, one) for one in Template.parse(value).references)


def read_template(text: str, at: At, found: Findings) -> Any:
    """Return the text, or note why its references cannot be read."""
    try:
        Template.parse(text)
    except RequestError as error:
        return found.add(at, error.message)
    return text


class Number(Rule):
    """A finite number above `low` up to `high`; a whole one, or a `closed` range, may be `low`."""

    def __init__(
        self, low: int, high: int, unit: str = "", *, whole: bool = False, closed: bool = False
    ) -> None:
        self._low, self._high = low, high
        self._whole, self._closed = whole, whole or closed
        what = f"{'a whole number' if whole else 'a number'}{f' of {unit}' if unit else ''}"
        self.says = f"{what} {'from' if self._closed else 'above'} {low:,} up to {high:,}"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take a number in the range; true and false are no numbers."""
        kind = int if self._whole else int | float
        if isinstance(value, kind) and not isinstance(value, bool):
            low_is_kept = value >= self._low if self._closed else value > self._low
            if low_is_kept and value <= self._high:
                return value if self._whole else float(value)
        return self.refuse(value, at, found)

    def plain(self, value: float) -> float:
        """Write a number without a needless `.0`."""
        return int(value) if value == int(value) else value

    def schema(self) -> JsonSchema:
        """Return its range."""
        bound = "minimum" if self._closed else "exclusiveMinimum"
        kind = "integer" if self._whole else "number"
        return {"type": kind, bound: self._low, "maximum": self._high}


class Flag(Rule):
    """True or false, and no other word for them."""

    says = "`true` or `false`"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take a truth value; `yes`, `no`, `on` and `off` are text in YAML 1.2."""
        return value if isinstance(value, bool) else self.refuse(value, at, found)

    def schema(self) -> JsonSchema:
        """Return its type."""
        return {"type": "boolean"}


class Choice(Rule):
    """One word of a few; of an enumeration, its member is kept."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = {str(word): word for word in words}
        self.says = f"one of {', '.join(f'`{word}`' for word in self._words)}"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take a word, or the member that it names."""
        if isinstance(value, str) and value in self._words:
            return self._words[value]
        close = did_you_mean(value, self._words) if isinstance(value, str) else ""
        return found.add(at, f"`{_label(at)}` must be {self.says}, got {shown(value)}{close}")

    def plain(self, value: str) -> str:
        """Write the word."""
        return str(value)

    def schema(self) -> JsonSchema:
        """Return the words."""
        return {"enum": list(self._words)}


class Dollars(Rule):
    """An amount of money."""

    says = f"an amount of USD from 0 to {AMOUNT_USD_MAX:,}"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take what is exactly an amount; `0.1` means a tenth."""
        try:
            return Money.of(value)
        except RequestError:
            return self.refuse(value, at, found)

    def plain(self, value: Money) -> float | str:
        """Write a number where it means exactly the amount, else text."""
        number = float(value.usd)
        if Money.of(number) != value:
            return f"{value.usd:f}"
        return int(number) if number.is_integer() else number

    def schema(self) -> JsonSchema:
        """Return its range; an amount may be written as text."""
        amount = {"type": "number", "minimum": 0, "maximum": AMOUNT_USD_MAX}
        return {"anyOf": [amount, {"type": "string"}]}


class TreePath(Rule):
    """A path inside the tree: of a file, a folder, or a pattern such as `src/**/*.py`."""

    def __init__(self, says: str, *, root_too: bool = False) -> None:
        self.says = says
        self._root_too = root_too

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take a plain relative path; what leaves the tree, or enters `.git`, is refused."""
        if self._root_too and value == ".":
            return value
        try:
            check_path(value)
        except PlanError as error:
            rule = error.facts["rule"]
            return found.add(
                at, f"`{_label(at)}` must be {self.says}; it {rule}, got {shown(value)}"
            )
        return value

    def schema(self) -> JsonSchema:
        """Return what a pattern can say of it."""
        return {"type": "string", "pattern": r"^(?!/)(?!(.*/)?\.\.(/|$))[^\\\0]+$"}


class Question(Rule):
    """A condition."""

    says = 'a condition such as `nodes.scan.output.count > 3 and inputs.mode == "fast"`'

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take a condition, or text that is one."""
        if isinstance(value, Condition):
            return value
        # `when: false` is how a node is switched off, and YAML reads it as a truth value.
        text = str(value).lower() if isinstance(value, bool) else value
        if not isinstance(text, str):
            return self.refuse(value, at, found)
        try:
            return Condition(text)
        except RequestError as error:
            return found.add(at, error.message)

    def plain(self, value: Condition) -> str:
        """Write the text."""
        return value.text

    def schema(self) -> JsonSchema:
        """Return its length."""
        return {"type": ["string", "boolean"], "maxLength": CONDITION_CHARS_MAX}

    def references(self, value: Condition, at: At) -> Iterator[tuple[At, Reference]]:
        """Yield what the condition asks about."""
        return ((at, one) for one in value.references)
