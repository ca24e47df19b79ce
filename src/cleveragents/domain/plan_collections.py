"""The rules for lists, mappings and literal values of a plan, and how it keeps them frozen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.conditions import Reference, Template
from cleveragents.domain.plan_rules import (
    At,
    Choice,
    Findings,
    JsonSchema,
    Rule,
    Text,
    read_template,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DEPTH_MAX: Final = 16


class FrozenMap(Mapping[str, Any]):
    """A mapping that cannot be changed, so that a plan is a value: it has a hash and pickles."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        self._items = dict(items or {})

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"


class Listed(Rule):
    """A list of one kind of thing, each at most once where `unique`."""

    def __init__(self, item: Rule, says: str, *, size_max: int = 1000, unique: bool = True) -> None:
        self._item, self._size_max, self._unique = item, size_max, unique
        self.says = f"a list of {says}"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take a list; items that break their rule are left out of the draft."""
        if not isinstance(value, list | tuple):
            return self.refuse(value, at, found)
        if len(value) > self._size_max:
            return found.add(
                at, f"A list may have at most {self._size_max:,} items, got {len(value):,}"
            )
        kept: dict[Any, None] = {}
        items = [self._item.read(one, (*at, place), found) for place, one in enumerate(value)]
        for place, one in enumerate(items):
            if self._unique and one is not None and one in kept:
                found.add((*at, place), f"{shown(one)} stands twice in this list")
            kept[one] = None
        return tuple(one for one in (kept if self._unique else items) if one is not None)

    def plain(self, value: Iterable[Any]) -> list[Any]:
        """Write each item."""
        return [self._item.plain(one) for one in value]

    def schema(self) -> JsonSchema:
        """Return the rule of its items."""
        told: JsonSchema = {
            "type": "array",
            "items": self._item.schema(),
            "maxItems": self._size_max,
        }
        return {**told, "uniqueItems": True} if self._unique else told

    def parts(self) -> tuple[Rule, ...]:
        """Return the rule of its items."""
        return (self._item,)

    def references(self, value: Iterable[Any], at: At) -> Iterator[tuple[At, Reference]]:
        """Yield those of each item."""
        for place, one in enumerate(value):
            yield from self._item.references(one, (*at, place))


class Mapped(Rule):
    """A mapping from names of the user's choice to one kind of thing."""

    def __init__(self, key: Text | Choice, value: Rule, says: str, *, size_max: int = 1000) -> None:
        self._key, self._value, self._size_max = key, value, size_max
        self.says = f"a mapping from {says}"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take a mapping."""
        if not isinstance(value, Mapping):
            return self.refuse(value, at, found)
        if len(value) > self._size_max:
            return found.add(
                at, f"A mapping may have at most {self._size_max:,} keys, got {len(value):,}"
            )
        items = {}
        for key, one in value.items():
            place, since = (*at, key), len(found.mistakes)
            name = self._key.read(key, place, found)
            found.move(since, place, place)
            items[name] = self._value.read(one, place, found)
        return FrozenMap(items)

    def plain(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Write each value."""
        return {str(key): self._value.plain(one) for key, one in value.items()}

    def schema(self) -> JsonSchema:
        """Return the rules of its keys and values."""
        return {
            "type": "object",
            "propertyNames": self._key.schema(),
            "additionalProperties": self._value.schema(),
            "maxProperties": self._size_max,
        }

    def parts(self) -> tuple[Rule, ...]:
        """Return the rule of its values."""
        return (self._value,)

    def references(self, value: Mapping[str, Any], at: At) -> Iterator[tuple[At, Reference]]:
        """Yield those of each value."""
        for key, one in value.items():
            if one is not None:
                yield from self._value.references(one, (*at, key))


class Literal(Rule):
    """Any JSON value; texts in it may hold templates."""

    says = "text, a number, true, false, null, or a list or mapping of these"

    def read(self, value: Any, at: At, found: Findings) -> Any:  # noqa: PLR0911  # one for each kind of value
        """Take a value and freeze it; a null stays one."""
        if len(at) > _DEPTH_MAX:
            return found.add(at, f"A plan may be nested {_DEPTH_MAX} deep at most")
        match value:
            case str():
                return read_template(value, at, found)
            case list() | tuple():
                return tuple(self.read(one, (*at, place), found) for place, one in enumerate(value))
            case Mapping() if all(isinstance(key, str) for key in value):
                inside = {key: self.read(one, (*at, key), found) for key, one in value.items()}
                return FrozenMap(inside)
            case None | bool() | int():
                return value
            case float() if math.isfinite(value):
                return value
        return self.refuse(value, at, found)

    def plain(self, value: Any) -> Any:
        """Write lists and mappings as such."""
        if isinstance(value, tuple):
            return [self.plain(one) for one in value]
        if isinstance(value, FrozenMap):
            return {key: self.plain(one) for key, one in value.items()}
        return value

    def schema(self) -> JsonSchema:
        """Return no limit."""
        return {}

    def references(self, value: Any, at: At) -> Iterator[tuple[At, Reference]]:
        """Yield those of every text inside."""
        if isinstance(value, str):
            yield from ((at, one) for one in Template.parse(value).references)
        elif isinstance(value, tuple):
            for place, one in enumerate(value):
                yield from self.references(one, (*at, place))
        elif isinstance(value, FrozenMap):
            for key, one in value.items():
                yield from self.references(one, (*at, key))


class Either(Rule):
    """A list by one rule, anything else by another."""

    def __init__(self, single: Rule, many: Listed) -> None:
        self._single, self._many = single, many
        self.says = f"{single.says}, or {many.says}"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take either."""
        return self._for(value).read(value, at, found)

    def plain(self, value: Any) -> Any:
        """Write either."""
        return self._for(value).plain(value)

    def schema(self) -> JsonSchema:
        """Return both."""
        return {"anyOf": [self._single.schema(), self._many.schema()]}

    def references(self, value: Any, at: At) -> Iterator[tuple[At, Reference]]:
        """Yield those of either."""
        return self._for(value).references(value, at)

    def _for(self, value: Any) -> Rule:
        return self._many if isinstance(value, list | tuple) else self._single
