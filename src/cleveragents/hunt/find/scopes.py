"""Owners of state with what runs on them: bases joined, helpers unfolded into their callers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from cleveragents.hunt.find.events import ANY_LOCK, GLOBAL, READS, Event, Function, Hold, Op
from cleveragents.hunt.find.vocabulary import Kind, looks_like_a_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cleveragents.hunt.find.modules import ClassFacts, ModuleFacts

__all__ = ["STRIDE", "Entry", "Scope", "Tree"]

#: They run before anybody else has the object, or after everybody.
_INITS: Final = frozenset(
    {"__init__", "__new__", "__post_init__", "__setstate__", "__init_subclass__", "__del__"}
    | {"__set_name__", "__class_getitem__", "__copy__", "__deepcopy__", "__reduce__"}
    | {"__getstate__", "__repr__", "__str__", "__eq__", "__hash__", "__getattr__"}
    | {"__getattribute__", "__setattr__", "__dir__", "__sizeof__", "__format__"}
)
_IGNORED: Final = frozenset({Kind.LOCK, Kind.LOOP_LOCK, Kind.SAFE})
#: What is unfolded into one entry at most; a longer one is cut.
_EVENTS_MAX: Final = 400
_DEPTH_MAX: Final = 6
_BASES_MAX: Final = 16
#: Branches and regions of one function have smaller numbers.
STRIDE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A function that others may call, with everything that it does to the state."""

    name: str
    line: int
    events: tuple[Event, ...]
    is_public: bool
    #: Nobody calls it but a thread of the owner's own.
    is_thread: bool
    is_async: bool
    #: Whether the owner itself defines it, and not a base.
    is_own: bool
    tested: frozenset[str]
    lock_per_call: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """An owner of state: a class with its bases, or a module."""

    module: ModuleFacts
    owner: ClassFacts | None
    entries: tuple[Entry, ...]
    lock: str | None
    #: Some base is abstract: nobody can build it, so its children are tried.
    has_abstract_base: bool
    claims_safety: bool = False


class Tree:
    """All modules that were read, by name."""

    def __init__(self, modules: Iterable[ModuleFacts]) -> None:
        self.modules = tuple(modules)
        self._by_name: dict[str, list[tuple[ModuleFacts, ClassFacts]]] = {}
        self._guards: dict[str, str] = {}
        for module in self.modules:
            self._guards |= module.guards
            for one in module.classes:
                self._by_name.setdefault(one.name.rpartition(".")[2], []).append((module, one))

    def find_class(self, name: str, seen_from: ModuleFacts) -> ClassFacts | None:
        """Return the class that a module means by a name, if the tree holds it."""
        full = seen_from.imports.get(name, name)
        found = self._by_name.get(full.rpartition(".")[2], [])
        for module, one in found:
            if module is seen_from:
                return one
        source = full.rpartition(".")[0].lstrip(".")
        named = [one for module, one in found if source and module.name.endswith(source)]
        if named:
            return named[0]
        return found[0][1] if len(found) == 1 else None

    def scopes(self, module: ModuleFacts, targets: frozenset[str]) -> Iterator[Scope]:
        """Yield the owners of a module; `targets` run in threads of their own."""
        for one in module.classes:
            if not one.is_stateless:
                yield self._class_scope(module, one, targets)
        functions = {name: (function, 0) for name, function in module.functions.items()}
        unfolding = _Unfolding([functions], self._guards, module.kinds, {}, is_module=True)
        yield Scope(
            module=module,
            owner=None,
            entries=tuple(unfolding.entries(targets)),
            lock=_lock_in(module.kinds),
            has_abstract_base=False,
        )

    def _class_scope(self, module: ModuleFacts, one: ClassFacts, targets: frozenset[str]) -> Scope:
        line = list(self.line_of(one, module))
        kinds: dict[str, Kind] = {GLOBAL + name: kind for name, kind in module.kinds.items()}
        aliases: dict[str, str] = {}
        for base in reversed(line):
            kinds |= base.kinds
            aliases |= base.lock_aliases
        tables = [
            {name: (method, at) for name, method in base.methods.items()}
            for at, base in enumerate(line)
        ]
        unfolding = _Unfolding(tables, self._guards, kinds, aliases, is_module=False)
        own = frozenset(
            target.rpartition(".")[2] for target in targets if target.startswith(f"{one.name}.")
        )
        return Scope(
            module=module,
            owner=one,
            entries=tuple(unfolding.entries(own)),
            lock=_lock_in(
                {name: kinds[name] for base in line for name in base.kinds if name not in aliases}
            ),
            has_abstract_base=any(base.is_abstract for base in line[1:]),
            claims_safety=any(base.claims_safety for base in line),
        )

    def line_of(self, one: ClassFacts, module: ModuleFacts) -> Iterator[ClassFacts]:
        """Yield a class and the bases that the tree holds, the nearest first."""
        waiting, seen = [one], set[int]()
        while waiting and len(seen) < _BASES_MAX:
            current = waiting.pop(0)
            if id(current) in seen:
                continue
            seen.add(id(current))
            yield current
            bases = (self.find_class(name, module) for name in current.bases)
            waiting += [base for base in bases if base is not None and not base.is_stateless]


def _lock_in(kinds: Mapping[str, Kind]) -> str | None:
    locks = sorted(name for name, kind in kinds.items() if kind is Kind.LOCK)
    return locks[0] if locks else None


class _Unfolding:
    """Puts the events of the functions that an entry calls in the place of the calls."""

    def __init__(
        self,
        tables: list[dict[str, tuple[Function, int]]],
        guards: Mapping[str, str],
        kinds: Mapping[str, Kind],
        aliases: Mapping[str, str],
        *,
        is_module: bool,
    ) -> None:
        self._tables = tables
        self._guards = guards
        self._kinds = kinds
        self._aliases = aliases
        self._is_module = is_module
        self._numbers = count(1)
        self._found: dict[str, tuple[Function, int]] = {}
        for table in reversed(tables):
            self._found |= table

    def entries(self, targets: frozenset[str]) -> Iterator[Entry]:
        """Yield what others may call: public functions, and private ones that nobody here calls."""
        called = {
            event.state.removeprefix(GLOBAL).removeprefix("super.")
            for name, (function, _) in self._found.items()
            for event in function.events
            if event.op is Op.CALL and event.state.removeprefix(GLOBAL) != name
        }
        called |= {
            event.state
            for function, _ in self._found.values()
            for event in function.events
            if event.op in READS and event.state in self._found
        } - targets
        for name, (function, at) in self._found.items():
            is_public = not name.startswith("_") or (name.startswith("__") and name.endswith("__"))
            if name in _INITS or (not is_public and (name in called) and name not in targets):
                continue
            if not is_public and function.caller_locks:
                continue
            entry = self._entry(name, function, at, is_public=is_public)
            yield replace(entry, is_thread=name in targets and not is_public)

    def _entry(self, name: str, function: Function, at: int, *, is_public: bool) -> Entry:
        held = frozenset({Hold(ANY_LOCK, 0)}) if function.caller_locks else frozenset[Hold]()
        tested, per_call = set(function.tested), set(function.lock_per_call)
        start = Event(Op.CALL, name, function.line, held)
        events: list[Event] = []
        for event, inside in self._unfold(function, at, start, ()):
            if len(events) == _EVENTS_MAX:
                break
            tested |= inside.tested
            per_call |= inside.lock_per_call
            events.append(event)
        return Entry(
            name=name,
            line=function.line,
            events=tuple(events),
            is_public=is_public,
            is_thread=False,
            is_async=function.is_async,
            is_own=at == 0,
            tested=frozenset(tested),
            lock_per_call=frozenset(per_call),
        )

    def _unfold(
        self, function: Function, at: int, call: Event, above: tuple[str, ...]
    ) -> Iterator[tuple[Event, Function]]:
        offset = next(self._numbers) * STRIDE
        holds = call.holds | self._by_decorator(function, offset)
        for event in function.events:
            own = frozenset(
                Hold(self._aliases.get(hold.lock, hold.lock), offset + hold.region)
                for hold in event.holds
            )
            path = tuple((offset + branch, arm) for branch, arm in event.path)
            moved = event._replace(holds=holds | own, path=call.path + path)
            if moved.state.endswith("()") and moved.op is not Op.CALL:
                moved = self._resolved(moved)
            inner = self._callee(moved, at)
            if moved.op is Op.STRANGER and moved.guessed and above:
                continue  # what a helper is given comes from this very owner
            if inner is None:
                yield from ((one, function) for one in self._state_event(moved))
            elif len(above) < _DEPTH_MAX and inner[0].name not in above:
                yield from self._unfold(*inner, moved, (*above, function.name))

    def _by_decorator(self, function: Function, offset: int) -> frozenset[Hold]:
        for name in sorted(function.decorators):
            lock = self._guards.get(name, ANY_LOCK if looks_like_a_lock(name) else None)
            if lock is not None:
                return frozenset({Hold(lock, offset)})
        return frozenset()

    def _callee(self, event: Event, at: int) -> tuple[Function, int] | None:
        """Return the function that an event runs: a call, a property, an item of the object."""
        name = event.state
        if event.op is Op.CALL:
            if name.startswith("super."):
                tables = self._tables[at + 1 :]
                name = name.removeprefix("super.")
                return next((table[name] for table in tables if name in table), None)
            if name.startswith(GLOBAL) and not self._is_module:
                return None
            return self._found.get(name.removeprefix(GLOBAL))
        found = None
        if event.op in READS and not event.depth:
            found = self._found.get(name)
        elif event.op is Op.WRITE:
            found = self._found.get(f"{name}.setter")
        return (
            found if found is not None and (found[0].is_property or event.op is Op.WRITE) else None
        )

    def _resolved(self, event: Event) -> Event:
        """Name the state that a helper handed out, if it did; a fresh value is nobody's state."""
        function, _ = self._found.get(event.state.removesuffix("()"), (None, 0))
        if function is None or function.returns is None:
            return event
        state, depth = function.returns
        return event._replace(state=state, depth=event.depth + depth)

    def _state_event(self, event: Event) -> Iterator[Event]:
        """Yield the event if it is about state; a call of an attribute is one of a stranger."""
        name = event.state
        if event.op is Op.STRANGER:
            yield event
        elif event.guessed and event.depth == 1 and self._kind(name) is Kind.UNKNOWN:
            return
        elif event.op is Op.CALL:
            is_method = name.startswith(("super.", "__", GLOBAL))
            if event.holds and not is_method and name in self._kinds:
                yield event._replace(op=Op.STRANGER)
        elif self._is_module:
            if name.startswith(GLOBAL) and self._is_state(name.removeprefix(GLOBAL)):
                yield event._replace(state=name.removeprefix(GLOBAL))
        elif self._is_state(name):
            yield event

    def _kind(self, name: str) -> Kind:
        return self._kinds.get(name.removeprefix(GLOBAL) if self._is_module else name, Kind.UNKNOWN)

    def _is_state(self, name: str) -> bool:
        is_handed_out = name.endswith("()")
        return (
            not is_handed_out and name not in self._found and self._kinds.get(name) not in _IGNORED
        )
