"""What an object holds, as text in which two runs that are alike read alike.

The exact text keeps the order of lists and who is who: an object that was seen before is told by
the place where it was seen. The loose text forgets the order inside lists, the numbers of
`itertools.count`, who is who inside of a value, and whether two containers that were only returned
are one. What differs in the exact text alone may be harmless, so it is called a suspicion and not a
bug.
"""

from __future__ import annotations

import array
import collections
import datetime as dt
import decimal
import enum
import fractions
import io
import pathlib
import re
import types
import uuid
from collections import abc
from typing import TYPE_CHECKING, Any

from frontrun._cooperative import (
    CooperativeCondition,
    CooperativeEvent,
    CooperativeLock,
    CooperativeQueue,
    CooperativeRLock,
    CooperativeSemaphore,
)

from cleveragents.hunt.prove.world import Id, IdCount

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Snapshot", "fields_of"]

_DEPTH_MAX = 12
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
#: Where the memory of a 64-bit process lies: such a number is an `id()`, another in every run.
_ADDRESSES = (0x5500_0000_0000, 0x7FFF_FFFF_FFFF)
#: Below this a number is a count, not the identity of a thread.
_THREAD_IDENT_MIN = 1_000_000
_ATOMS = (
    int, float, complex, bytes, range, slice, type(None), type(...), decimal.Decimal,
    fractions.Fraction, dt.date, dt.time, dt.timedelta, uuid.UUID,
    pathlib.PurePath, bytearray, array.array,
)  # fmt: skip
_SEQUENCES = (list, tuple, collections.deque)
_CONTAINERS = (list, dict, set, collections.deque)
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
_LOCKS = (CooperativeLock, CooperativeRLock, CooperativeCondition)
#: Modules whose objects keep their insides to themselves.
_OPAQUE = frozenset(
    ["_contextvars", "_io", "_random", "_thread", "_weakref", "_weakrefset", "asyncio",
     "concurrent", "contextvars", "functools", "itertools", "logging", "multiprocessing", "random",
     "re", "socket", "ssl", "subprocess", "threading", "weakref"]
)  # fmt: skip


class Snapshot:
    """Renders values one after the other; the state first, so that results can point into it."""

    def __init__(
        self,
        *,
        loose: bool = False,
        threads: Mapping[int, int] | None = None,
        plain: bool = False,
        by_content: bool = False,
    ) -> None:
        self._loose = loose
        #: A container that is returned is told by what it holds, even if the state holds it.
        self._by_content = by_content
        #: Identities of threads to their numbers: they differ in every run.
        self._threads = threads or {}
        #: A plain text names no object and no id: it only serves to sort by.
        self._plain = plain
        self._places: dict[int, str] = {}
        self._ids: dict[int, int] = {}
        # Keeps what was seen alive: another object could take its address.
        self._kept: list[object] = []
        self._returned = False

    def state(self, name: str, value: object) -> str:
        """Render what the calls share."""
        self._returned = False
        return self._render(value, name, 0)

    def result(self, name: str, value: object) -> str:
        """Render what a call gave, or what became of its arguments."""
        self._returned = True
        return self._render(value, name, 0)

    def name_ids(self, values: Iterable[object]) -> None:
        """Give the numbers that are only names their order of appearance in these values."""
        scout = Snapshot(loose=True, threads=self._threads)
        scout._ids = self._ids
        for value in values:
            scout.result("", value)

    def _render(self, value: object, place: str, depth: int) -> str:
        atom = self._atom(value)
        if atom is not None:
            return atom
        if depth > _DEPTH_MAX:
            return "…"
        if _is_value(value):
            whole = self._loose and not self._plain and not isinstance(value, tuple | frozenset)
            return self._sort_text(value, depth) if whole else self._inside(value, place, depth)
        if self._by_content and self._returned and depth == 0 and _holds_things(value):
            return self._sort_text(value, depth)
        if id(value) in self._places:
            return "<…>" if self._plain else f"<{self._places[id(value)]}>"
        unnamed = self._loose and self._returned and isinstance(value, _CONTAINERS)
        self._places[id(value)] = place
        self._kept.append(value)
        text = self._inside(value, place, depth)
        if unnamed or self._plain:
            del self._places[id(value)]
        return text

    def _atom(self, value: object) -> str | None:  # noqa: PLR0911  # one for each kind
        if isinstance(value, str):
            return repr(_ADDRESS.sub("0x…", str.__str__(value)))
        if isinstance(value, enum.Enum):
            return str.__str__(f"{type(value).__name__}.{value.name}")
        if isinstance(value, int) and value > _THREAD_IDENT_MIN and value in self._threads:
            return f"<thread {self._threads[value]}>"
        if isinstance(value, int) and _ADDRESSES[0] < value < _ADDRESSES[1]:
            return "<address>"
        if isinstance(value, Id) and self._plain:
            # Those that calls gave have their names by now: lists of them have one order.
            return f"<id {self._ids.get(int(value), '')}>"
        if isinstance(value, Id) and self._loose:
            return f"<id {self._ids.setdefault(int(value), len(self._ids) + 1)}>"
        if isinstance(value, _ATOMS):
            return _repr(value)
        if isinstance(value, _NAMED):
            return f"<{getattr(value, '__qualname__', value.__name__)}>"
        return None

    def _inside(self, value: object, place: str, depth: int) -> str:
        content = self._content(value, place, depth)
        own = {} if content is not None and _is_builtin(value) else fields_of(value)
        if content is not None and not own:
            return content
        if content is None and not own and _is_opaque(value):
            return f"<{type(value).__name__}>"
        parts = [] if content is None else [content]
        parts += [
            f"{name}={self._render(own[name], f'{place}.{name}', depth + 1)}"
            for name in sorted(own)
        ]
        return f"{type(value).__name__}({', '.join(parts)})"

    def _content(self, value: object, place: str, depth: int) -> str | None:
        special = _special(value)
        if special is not None:
            return special if isinstance(special, str) else self._items(special, place, depth)
        if isinstance(value, dict | types.MappingProxyType):
            return self._pairs(value, place, depth)
        if isinstance(value, set | frozenset):
            ordered = self._sorted(value, depth)
            texts = [self._render(one, f"{place}{{…}}", depth + 1) for one in ordered]
            return f"{{{', '.join(texts)}}}" if texts else "set()"
        if isinstance(value, _SEQUENCES):
            return self._items(value, place, depth)
        return None

    def _items(self, value: Iterable[object], place: str, depth: int) -> str:
        forget = self._loose and not isinstance(value, tuple)
        ordered = self._sorted(value, depth) if forget else list(value)
        texts = [
            self._render(one, f"{place}[{'…' if forget else number}]", depth + 1)
            for number, one in enumerate(ordered)
        ]
        opening, closing = "()" if isinstance(value, tuple) else "[]"
        return f"{opening}{', '.join(texts)}{closing}"

    def _pairs(self, value: Mapping[Any, object], place: str, depth: int) -> str:
        pairs = list(value.items())
        if self._loose or not isinstance(value, collections.OrderedDict):
            pairs.sort(key=lambda pair: tuple(self._sort_text(one, depth) for one in pair))
        texts = []
        for key, one in pairs:
            name = self._render(key, f"{place}.key", depth + 1)
            texts.append(f"{name}: {self._render(one, f'{place}[{name}]', depth + 1)}")
        return f"{{{', '.join(texts)}}}"

    def _sorted(self, values: Iterable[object], depth: int) -> list[object]:
        return sorted(values, key=lambda one: self._sort_text(one, depth))

    def _sort_text(self, value: object, depth: int) -> str:
        plain = Snapshot(loose=True, threads=self._threads, plain=True)
        plain._ids = self._ids
        if self._plain:
            # What holds this value: without it, lists in a circle would be sorted without end.
            plain._places = self._places
        return plain._render(value, "", depth + 1)


def fields_of(value: object) -> dict[str, object]:
    """Return the attributes that an object of a Python class keeps, slots among them."""
    if _is_opaque(value):
        return {}
    found = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            private = name.startswith("__") and not name.endswith("__")
            full = f"_{kind.__name__.lstrip('_')}{name}" if private else name
            if name not in {"__dict__", "__weakref__"} and hasattr(value, full):
                found[full] = getattr(value, full)
    return found


def _special(value: object) -> str | list[object] | None:  # noqa: PLR0911  # one for each kind
    """Return the text, or the items, of what would otherwise hide or twist its state."""
    if isinstance(value, IdCount):
        return repr(value)
    if isinstance(value, CooperativeSemaphore):
        return f"<semaphore at {value._value}>"  # noqa: SLF001  # it has no public reading
    if isinstance(value, CooperativeEvent):
        return f"<event {'set' if value.is_set() else 'not set'}>"
    if isinstance(value, CooperativeQueue):
        return list(value._queue.queue)  # noqa: SLF001  # reading it by `get` would change it
    if isinstance(value, _LOCKS):
        return "<lock held>" if _held(value) else "<lock>"
    if isinstance(value, io.StringIO | io.BytesIO):
        return "<closed file>" if value.closed else f"<file {value.getvalue()!r}>"
    if isinstance(value, BaseException):
        return f"{type(value).__name__}()"
    return None


def _held(lock: Any) -> bool:
    inner = getattr(lock, "_lock", None)
    locked = getattr(inner, "locked", None)
    return bool(locked()) if callable(locked) else False


def _repr(value: object) -> str:
    text = repr(value)
    return _ADDRESS.sub("0x…", text)


def _is_builtin(value: object) -> bool:
    return type(value).__module__ in {"builtins", "collections", "frontrun._cooperative"}


def _is_opaque(value: object) -> bool:
    module = type(value).__module__.partition(".")[0]
    return module in _OPAQUE or module == "frontrun"


def _holds_things(value: object) -> bool:
    """Say whether it is a container, of whatever class."""
    return isinstance(value, collections.deque | abc.Mapping | abc.Set | abc.Sequence)


def _is_value(value: object) -> bool:
    """Say whether it is told by what it holds: two that are equal are as good as one."""
    if isinstance(value, tuple | frozenset):
        return True
    kind = type(value)
    return kind.__eq__ is not object.__eq__ and kind.__hash__ is not None
