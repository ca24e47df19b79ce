"""Suspicions as candidates: state that is touched by the same calls is one."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from cleveragents.hunt.candidate import Access, Candidate, Evidence, EvidenceKind, Pattern
from cleveragents.hunt.find.events import GLOBAL, WRITES, Event, Op
from cleveragents.hunt.find.evidence import STRENGTH
from cleveragents.hunt.find.patterns import Suspicion, suspicions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cleveragents.hunt.find.scopes import Entry, Scope

__all__ = ["candidates_of"]

_CALLS_MAX: Final = 8
_ACCESSES_MAX: Final = 40
#: With no sign of threads, weaker suspicions are left out.
_WEIGHT_MIN_ALONE: Final = 5
_ACCESS_KINDS: Final[dict[Op, str]] = {
    Op.TEST: "test",
    Op.READ: "read",
    Op.LAST: "read",
    Op.ITERATE: "iterate",
    Op.WRITE: "write",
    Op.ADD: "write",
    Op.REMOVE: "write",
    Op.ENSURE: "write",
    Op.STRANGER: "call",
}
_LOOP: Final = frozenset({EvidenceKind.STATEFUL, EvidenceKind.MODULE_INSTANCE})


def candidates_of(
    scope: Scope, evidence: tuple[Evidence, ...]
) -> tuple[list[Candidate], str | None]:
    """Return the candidates of an owner, and the reason if it was left out as a whole."""
    found = suspicions(scope)
    least = _WEIGHT_MIN_ALONE if evidence[0].kind is EvidenceKind.STATEFUL else 0
    found = [one for one in found if one.weight >= least]
    if scope.owner is not None and _runs_in_a_loop(scope, evidence):
        return [], f"`{scope.owner.name}` runs in one event loop: it has coroutines and no threads"
    groups = _groups(found)
    made = (_candidate(scope, group, evidence) for group in groups)
    return [one for one in made if one is not None], None


def _runs_in_a_loop(scope: Scope, evidence: Sequence[Evidence]) -> bool:
    speaks_of_threads = any(one.kind not in _LOOP for one in evidence)
    return not speaks_of_threads and any(
        entry.is_async and any(event.op in WRITES for event in entry.events)
        for entry in scope.entries
    )


def _groups(found: Iterable[Suspicion]) -> list[list[Suspicion]]:
    """Join suspicions that have a state or a broken call in common."""
    leader: dict[str, str] = {}

    def top(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = leader.setdefault(leader[name], leader[name])
            name = leader[name]
        return name

    kept = list(found)
    for one in kept:
        for name in (*one.states[1:], f"{one.entries[0]}()"):
            leader[top(name)] = top(one.states[0])
    groups: dict[str, list[Suspicion]] = defaultdict(list)
    for one in kept:
        groups[top(one.states[0])].append(one)
    return list(groups.values())


def _candidate(
    scope: Scope, group: Sequence[Suspicion], evidence: tuple[Evidence, ...]
) -> Candidate | None:
    states = {state for one in group for state in one.states}
    entries = {entry.name: entry for entry in scope.entries}
    broken = [entries[one.entries[0]] for one in group]
    if not scope.has_abstract_base and not any(entry.is_own for entry in broken):
        return None  # it is the base's, and is named there
    calls = _calls(scope, group, states)
    if not calls:
        return None
    owner, module = scope.owner, scope.module
    names = tuple(sorted(state.removeprefix(GLOBAL) for state in states))
    lines = [module.lines[name] for name in names if name in module.lines]
    return Candidate(
        module=module.name,
        path=module.path,
        import_root=module.import_root,
        owner=None if owner is None else owner.name,
        state=names,
        patterns=_patterns(group),
        calls=tuple(calls),
        accesses=_accesses([entries[name] for name in calls], states),
        evidence=evidence,
        line=owner.line if owner is not None else min(lines, default=1),
        lock=scope.lock,
        claims_safety=scope.claims_safety,
        rank=_rank(group, evidence),
    )


def _patterns(group: Sequence[Suspicion]) -> tuple[Pattern, ...]:
    weights = Counter[Pattern]()
    for one in group:
        weights[one.pattern] = max(weights[one.pattern], one.weight)
    return tuple(sorted(weights, key=lambda pattern: (-weights[pattern], pattern)))


def _calls(scope: Scope, group: Sequence[Suspicion], states: set[str]) -> list[str]:
    """Return the calls to try, the most suspicious first; what others may not call if need be."""
    weights = Counter[str]()
    for one in group:
        for at, name in enumerate(one.entries):
            weights[name] = max(weights[name], one.weight * 4 - at)
    for entry in scope.entries:
        touched = [event for event in entry.events if event.state in states]
        if touched and not weights[entry.name]:
            weights[entry.name] = 2 if any(one.op in WRITES for one in touched) else 1
    ordered = sorted(
        (entry for entry in scope.entries if weights[entry.name] and not entry.is_async),
        key=lambda entry: (not entry.is_public, -weights[entry.name], entry.line, entry.name),
    )
    # A private method that nobody here calls is for a base class, or for tests.
    alone = scope.owner is None
    meant = [entry for entry in ordered if entry.is_public or entry.is_thread or alone]
    return [entry.name for entry in (meant or ordered)[:_CALLS_MAX]]


def _accesses(entries: Iterable[Entry], states: set[str]) -> tuple[Access, ...]:
    def all_of() -> Iterator[Access]:
        for entry in entries:
            for event in entry.events:
                if event.state in states or (event.op is Op.STRANGER and event.holds):
                    yield _access(entry.name, event)

    unique = sorted(dict.fromkeys(all_of()), key=lambda one: (one.line, one.call, one.kind))
    return tuple(unique[:_ACCESSES_MAX])


def _access(call: str, event: Event) -> Access:
    kind = _ACCESS_KINDS[event.op]
    return Access(call=call, line=event.line, kind=kind, guarded=bool(event.holds))


def _rank(group: Sequence[Suspicion], evidence: Sequence[Evidence]) -> int:
    """Weigh the evidence above the patterns, and the strongest of each above the rest."""
    strengths = [STRENGTH[kind] for kind in dict.fromkeys(one.kind for one in evidence)]
    patterns = {one.pattern for one in group}
    shared = strengths[0] * 10 + sum(strengths[1:])
    return shared + max(one.weight for one in group) * 10 + len(patterns)
