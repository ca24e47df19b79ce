"""Records of a plan: values with named fields, and records of several kinds.

A record is a frozen dataclass whose fields are made by `spec`: rule, description and default stand
in one place. The same reading serves a file and Python, so both refuse the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.conditions import Reference, did_you_mean
from cleveragents.domain.plan_rules import At, Findings, JsonSchema, Rule, TooMany

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Spec:
    """One field of a record: its names in Python and in a file, its rule, words and default."""

    name: str
    key: str
    rule: Rule
    about: str
    default: Any

    @property
    def required(self) -> bool:
        """Say whether the field has to be there."""
        return self.default is MISSING


def spec(rule: Rule, about: str, default: Any = MISSING, *, key: str | None = None) -> Any:
    """Declare a field of a record; `key` is its name in a file when that is not Python's."""
    return field(default=default, metadata={"rule": rule, "about": about, "key": key})


@dataclass(frozen=True, slots=True)
class PlanValue:
    """A record of a plan: checked at birth by the rules of its fields, and then by `settle`."""

    def __post_init__(self) -> None:
        found = Findings()
        given = {
            one.key: value
            for one in specs_of(type(self))
            if (value := getattr(self, one.name)) is not None or one.required
        }
        values: dict[str, Any] = {}
        with suppress(TooMany):
            values = examine(type(self), given, (), found)
        found.raise_if_any(type(self).__name__)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def settle(cls, values: dict[str, Any], at: At, found: Findings) -> None:
        """Check what rules of single fields cannot; a field that broke its rule is None here."""


def _specs_of(kind: type[PlanValue]) -> tuple[Spec, ...]:
    return tuple(
        Spec(
            one.name,
            one.metadata["key"] or one.name,
            one.metadata["rule"],
            one.metadata["about"],
            one.default,
        )
        for one in fields(kind)
    )


#: Return the fields of a kind of record in declared order.
specs_of: Final[Callable[[Any], tuple[Spec, ...]]] = cache(_specs_of)


def examine(
    kind: type[PlanValue], given: Mapping[str, Any], at: At, found: Findings
) -> dict[str, Any]:
    """Read the fields of a record and return them by their names in Python."""
    values: dict[str, Any] = {}
    for one in specs_of(kind):
        read = None
        if one.key not in given:
            if one.required:
                found.add(at, f"`{one.key}` is missing: {one.about}")
        elif given[one.key] is None:
            says = f"`{one.key}` has no value; write one, or leave the key out"
            found.add((*at, one.key), says)
        else:
            read = one.rule.read(given[one.key], (*at, one.key), found)
        values[one.name] = one.default if read is None and not one.required else read
    kind.settle(values, at, found)
    return values


def assembled(kind: type[PlanValue], values: Mapping[str, Any]) -> PlanValue:
    """Make a record of fields that were examined already.

    After a mistake it is a draft: it serves to find further mistakes, and is then thrown away.
    """
    record = kind.__new__(kind)
    for name, value in values.items():
        object.__setattr__(record, name, value)
    return record


def references_of(
    kind: type[PlanValue], values: Mapping[str, Any], at: At
) -> Iterator[tuple[At, Reference]]:
    """Yield each reference in the fields of a record, with its place."""
    for one in specs_of(kind):
        if values[one.name] is not None:
            yield from one.rule.references(values[one.name], (*at, one.key))


class Record(Rule):
    """A mapping with known keys; with `short`, anything else is taken as that one field."""

    def __init__(self, kind: type[PlanValue], *, short: str | None = None) -> None:
        self.kind = kind
        self.short = short
        fields_of_kind = ", ".join(f"`{one.key}`" for one in specs_of(kind))
        self.says = f"a mapping with {fields_of_kind}"
        if short is not None:
            self.says += f", or `{short}` alone"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take a record, or a mapping that can become one."""
        if isinstance(value, self.kind):
            return value
        if self.short is not None and not isinstance(value, Mapping):
            value = {self.short: value}
        if not isinstance(value, Mapping):
            return self.refuse(value, at, found)
        known = [one.key for one in specs_of(self.kind)]
        for key in value:
            if key not in known:
                found.add((*at, key), _unknown(key, known), on_key=True)
        return assembled(self.kind, examine(self.kind, value, at, found))

    def plain(self, value: PlanValue) -> Any:
        """Write the fields that differ from their defaults; the short form where it says all."""
        told = {
            one.key: one.rule.plain(inside)
            for one in specs_of(self.kind)
            if (inside := getattr(value, one.name)) is not None
            and (one.required or inside != one.default)
        }
        short = told.get(self.short) if self.short and len(told) == 1 else None
        return told if short is None or isinstance(short, Mapping) else short

    def schema(self) -> JsonSchema:
        """Refer to the definition, which stands in the schema once."""
        whole: JsonSchema = {"$ref": f"#/$defs/{self.kind.__name__}"}
        if self.short is None:
            return whole
        rule = next(one.rule for one in specs_of(self.kind) if one.key == self.short)
        return {"anyOf": [whole, {"not": {"type": "object"}, **rule.schema()}]}

    def parts(self) -> tuple[Rule, ...]:
        """Return the rules of the fields."""
        return tuple(one.rule for one in specs_of(self.kind))

    def references(self, value: PlanValue, at: At) -> Iterator[tuple[At, Reference]]:
        """Yield those of each field."""
        values = {one.name: getattr(value, one.name) for one in specs_of(self.kind)}
        return references_of(self.kind, values, at)


class Kinds(Rule):
    """One record of several kinds; the key that is there says which.

    A kind whose record has a field of its name stands in one mapping with its other fields
    (`command: …, shell: true`); any other has a mapping of its own (`llm: {…}`).
    """

    def __init__(self, what: str, kinds: Mapping[str, type[PlanValue]]) -> None:
        self._records = {kind: Record(record) for kind, record in kinds.items()}
        self._types = tuple(kinds.values())
        self.says = f"{what} with one of {_listed(kinds)}"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take a record of a kind, or a mapping that names its kind."""
        if isinstance(value, self._types):
            return value
        named = [kind for kind in self._records if isinstance(value, Mapping) and kind in value]
        if len(named) != 1:
            self._refuse_kind(value, named, at, found)
            # A draft without fields: somebody is there, though nobody can say who.
            some = self._types[0]
            return assembled(some, dict.fromkeys([one.name for one in specs_of(some)]))
        kind = named[0]
        if self._is_inline(kind):
            return self._records[kind].read(value, at, found)
        for key in value:
            if key != kind:
                found.add((*at, key), _unknown(key, [kind]), on_key=True)
        return self._records[kind].read(value[kind], (*at, kind), found)

    def plain(self, value: PlanValue) -> Any:
        """Write the record so that its kind can be seen."""
        kind = self._kind_of(value)
        told = self._records[kind].plain(value)
        return told if self._is_inline(kind) else {kind: told}

    def schema(self) -> JsonSchema:
        """Return one alternative for each kind."""
        return {"oneOf": [self._schema_of(kind) for kind in self._records]}

    def parts(self) -> tuple[Rule, ...]:
        """Return one record for each kind."""
        return tuple(self._records.values())

    def references(self, value: PlanValue, at: At) -> Iterator[tuple[At, Reference]]:
        """Yield those of the record."""
        kind = self._kind_of(value)
        inside = at if self._is_inline(kind) else (*at, kind)
        return self._records[kind].references(value, inside)

    def _refuse_kind(self, value: Any, named: list[str], at: At, found: Findings) -> None:
        if not isinstance(value, Mapping):
            self.refuse(value, at, found)
            return
        close = "" if named else did_you_mean(next(iter(value), ""), self._records)
        got = _listed(named or value) or "none"
        found.add(at, f"There must be {self.says}, got {got}{close}")

    def _kind_of(self, value: PlanValue) -> str:
        return next(kind for kind, record in self._records.items() if type(value) is record.kind)

    def _is_inline(self, kind: str) -> bool:
        return any(one.key == kind for one in specs_of(self._records[kind].kind))

    def _schema_of(self, kind: str) -> JsonSchema:
        record = self._records[kind].schema()
        if self._is_inline(kind):
            return record
        return {
            "type": "object",
            "properties": {kind: record},
            "required": [kind],
            "additionalProperties": False,
        }


def _unknown(key: object, known: list[str]) -> str:
    close = did_you_mean(key, known)
    return f"`{key}` is not known here{close or f'; known are {_listed(known)}'}"


def _listed(words: Iterable[object]) -> str:
    return ", ".join(f"`{word}`" for word in words)
