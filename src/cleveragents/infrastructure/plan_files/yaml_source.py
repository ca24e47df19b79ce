"""Read YAML into plain data, with the line and column of every key and value.

Only what is safe and unambiguous is read: one document, no tags, no key twice, bounded size, depth
and number of values, so that no file can tie up the reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml
from yaml.reader import ReaderError

from cleveragents.infrastructure.plan_files.core_schema import value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.domain.plan_rules import At

SIZE_BYTES_MAX: Final = 2_000_000
DEPTH_MAX: Final = 32
VALUES_MAX: Final = 500_000

#: A line and a column, both from 1.
Spot: TypeAlias = tuple[int, int]


class NotReadable(Exception):  # noqa: N818  # tells the loader what the text is; never leaves this package
    """The text is not YAML that a plan can be written in."""

    def __init__(self, spot: Spot, says: str) -> None:
        super().__init__(says)
        self.spot = spot
        self.says = says


@dataclass(frozen=True, slots=True)
class Source:
    """The data of a file, where each part of it stands, and which keys stand there twice."""

    data: Any
    keys: dict[At, Spot]
    values: dict[At, Spot]
    twice: tuple[tuple[Spot, str], ...]

    def spot(self, at: At, *, on_key: bool) -> Spot:
        """Return where something stands; what is not there itself stands where it should be."""
        at = self._by_place(at)
        if on_key and at in self.keys:
            return self.keys[at]
        while at not in self.values:
            at = at[:-1]
        return self.values[at]

    def _by_place(self, at: At) -> At:
        """Find a node of a list, which the rules know by its name, by its place in the file."""
        if len(at) < 2 or at[0] != "nodes" or not isinstance(at[1], str):
            return at
        nodes = self.data["nodes"]
        if not isinstance(nodes, list):
            return at
        places = [i for i, one in enumerate(nodes) if isinstance(one, dict)]
        place = next(i for i in places if nodes[i].get("name") == at[1])
        return ("nodes", place, *at[2:])


def text_of(raw: bytes) -> str:
    """Decode a file, or say where it is not UTF-8."""
    if len(raw) > SIZE_BYTES_MAX:
        says = f"A plan file may have at most {SIZE_BYTES_MAX:,} bytes, got {len(raw):,}"
        raise NotReadable((1, 1), says)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8", "replace")
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        says = f"A plan file must be UTF-8, got byte 0x{raw[error.start]:02x}"
        raise NotReadable((line, column), says) from None


def read_yaml(text: str) -> Source:
    """Return the data of one document, or say where the text cannot be read."""
    if len(text) > SIZE_BYTES_MAX:
        says = f"A plan may have at most {SIZE_BYTES_MAX:,} characters, got {len(text):,}"
        raise NotReadable((1, 1), says)
    try:
        return _Composer(_events(text)).source()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        spot = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
        raise NotReadable(spot, _problem(error)) from None
    except ReaderError as error:
        before = text[: error.position]
        spot = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        says = f"A plan file must be text, got the character U+{error.character:04X}"
        raise NotReadable(spot, says) from None


def _events(text: str) -> Iterator[yaml.Event]:
    # The pure Python parser on purpose: its places and messages are the same on every machine.
    return iter(yaml.parse(text, Loader=yaml.SafeLoader))


def _problem(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    if mark is not None and mark.buffer is not None and mark.buffer[mark.pointer] == "\t":
        return "YAML is indented by spaces, got a tab; write spaces instead"
    return f"This is not YAML: {error.problem or error.context}"


def _spot(event: yaml.Event) -> Spot:
    mark = event.start_mark
    assert mark is not None  # every event of the parser has one
    return mark.line + 1, mark.column + 1


class _Composer:
    """Makes data of parse events; its depth is bounded, so the interpreter's stack is safe."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._keys: dict[At, Spot] = {}
        self._values: dict[At, Spot] = {(): (1, 1)}
        self._twice: list[tuple[Spot, str]] = []
        # What each anchor stands for, with the number of values in it.
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0

    def source(self) -> Source:
        """Return what the one document holds."""
        data = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise NotReadable(_spot(event), "A plan file must be one document, got two")
                data = self._value(next(self._events), ())
        return Source(data, self._keys, self._values, tuple(self._twice))

    def _value(self, event: yaml.Event, at: At) -> Any:
        self._values[at] = _spot(event)
        before = self._count
        self._count += 1
        if isinstance(event, yaml.AliasEvent):
            data = self._aliased(event)
        else:
            _refuse_tag(event)
            data = self._fresh(event, at)
            anchor = getattr(event, "anchor", None)
            if anchor is not None:
                self._anchors[anchor] = data, self._count - before
        if self._count > VALUES_MAX:
            says = f"A plan may have at most {VALUES_MAX:,} values, aliases written out"
            raise NotReadable(_spot(event), says)
        return data

    def _fresh(self, event: yaml.Event, at: At) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return value_of(event.value) if event.implicit[0] else event.value
        if len(at) >= DEPTH_MAX:
            raise NotReadable(_spot(event), f"A plan may be nested {DEPTH_MAX} deep at most")
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Any] = []
            while not isinstance(one := next(self._events), yaml.SequenceEndEvent):
                items.append(self._value(one, (*at, len(items))))
            return items
        return self._mapping(at)

    def _mapping(self, at: At) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key, spot = self._key(event), _spot(event)
            if key in items:
                line = self._keys[(*at, key)][0]
                self._twice.append((spot, f"The key `{key}` stands twice, first in line {line}"))
                # Read and dropped, at a place that nobody asks for: the first one keeps its own.
                self._value(next(self._events), (*at, key, -1))
            else:
                self._keys[(*at, key)] = spot
                items[key] = self._value(next(self._events), (*at, key))
        return items

    def _key(self, event: yaml.Event) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise NotReadable(_spot(event), "A key must be a word, got a list, mapping or alias")
        _refuse_tag(event)
        if event.value == "<<" and event.implicit[0]:
            says = "Merge keys `<<` are not part of YAML 1.2; use `defaults` of the plan"
            raise NotReadable(_spot(event), says)
        return event.value

    def _aliased(self, event: yaml.AliasEvent) -> Any:
        if event.anchor not in self._anchors:
            says = f"The alias `*{event.anchor}` must come after its anchor `&{event.anchor}` ends"
            raise NotReadable(_spot(event), says)
        data, count = self._anchors[event.anchor]
        self._count += count
        return data


def _refuse_tag(event: yaml.Event) -> None:
    tag = getattr(event, "tag", None)
    if tag is not None:
        says = f"Tags are not read, got `{tag}`; write text in quotes, and the rest as it is"
        raise NotReadable(_spot(event), says)
