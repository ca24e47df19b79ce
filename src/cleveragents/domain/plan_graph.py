"""The graph of a plan: loops, order, what may start now, and fan-out. Pure, and without recursion.

A state is kept for each node (what is not told waits). A node that fans out is one node here:
`state_of` folds the states of its instances, so that a dependant waits for all of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Graph", "Instance", "NodeState", "expand", "joined", "state_of"]


class NodeState(StrEnum):
    """Where a node, or an instance of one, stands."""

    WAITING = "waiting"
    RUNNING = "running"
    #: Its result is kept, and its changes are on their way into the plan's tree.
    MERGING = "merging"
    DONE = "done"
    #: Its condition said no: dependants go on, and see null.
    SKIPPED = "skipped"
    FAILED = "failed"
    #: Its result is kept, and a person must choose between its changes and those of others.
    CONFLICTED = "conflicted"
    CANCELLED = "cancelled"

    @property
    def lets_dependants_start(self) -> bool:
        """Say whether what needs this node has got it."""
        return self in {self.DONE, self.SKIPPED}

    @property
    def stops_dependants(self) -> bool:
        """Say whether what needs this node can never start."""
        return self in {self.FAILED, self.CONFLICTED, self.CANCELLED}


#: What is known about nodes; a node that is not in it waits.
States = Mapping[str, NodeState]


@dataclass(frozen=True, slots=True)
class Graph:
    """Who needs whom; names stand in declared order, and every answer keeps that order.

    What `needs` names must be in the graph. Loops are allowed here, so that they can be named:
    `loop` finds one, and only `order` needs that there is none.
    """

    needs: Mapping[str, Sequence[str]]
    #: Who needs each node directly.
    dependants: Mapping[str, tuple[str, ...]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        dependants: dict[str, list[str]] = {name: [] for name in self.needs}
        for name, needed in self.needs.items():
            for one in dict.fromkeys(needed):
                if one not in dependants:
                    raise RequestError(f"`{name}` needs `{one}`, which is not in the graph")
                dependants[one].append(name)
        frozen = {name: tuple(names) for name, names in dependants.items()}
        object.__setattr__(self, "dependants", frozen)

    def loop(self) -> tuple[str, ...] | None:
        """Return a loop as `("a", "b", "a")`, where a needs b and b needs a, or None."""
        finished = set(self._sorted())
        start = next((name for name in self.needs if name not in finished), None)
        if start is None:
            return None
        # Each node that cannot be sorted needs another such node, so this walk must come back.
        walk: dict[str, None] = {}
        while start not in walk:
            walk[start] = None
            start = next(one for one in self.needs[start] if one not in finished)
        names = list(walk)
        return (*names[names.index(start) :], start)

    def order(self) -> tuple[str, ...]:
        """Return each node after all it needs; among the free ones the first declared is first."""
        names = self._sorted()
        if len(names) < len(self.needs):
            raise RequestError(f"A graph with a loop has no order: {' → '.join(self.loop() or ())}")
        return tuple(names)

    def ready(self, states: States) -> tuple[str, ...]:
        """Return the nodes that wait for nothing and may start."""
        return tuple(name for name in self.needs if self._is_ready(name, states))

    def released_by(self, name: str, states: States) -> tuple[str, ...]:
        """Return who may start now that this node has ended: `ready`, but only its dependants."""
        return tuple(one for one in self.dependants[name] if self._is_ready(one, states))

    def blocked(self, states: States) -> tuple[str, ...]:
        """Return the nodes that wait and can never start, because something upstream failed."""
        stopped = [
            name for name in self.needs if states.get(name, NodeState.WAITING).stops_dependants
        ]
        behind = self._reach(stopped, self.dependants)
        return tuple(
            name
            for name in self.needs
            if name in behind and states.get(name, NodeState.WAITING) is NodeState.WAITING
        )

    def downstream(self, name: str) -> tuple[str, ...]:
        """Return all that need this node, directly or not."""
        found = self._reach([name], self.dependants)
        return tuple(one for one in self.needs if one in found)

    def upstream(self, name: str) -> tuple[str, ...]:
        """Return all that this node needs, directly or not."""
        found = self._reach([name], self.needs)
        return tuple(one for one in self.needs if one in found)

    def _is_ready(self, name: str, states: States) -> bool:
        return states.get(name, NodeState.WAITING) is NodeState.WAITING and all(
            states.get(one, NodeState.WAITING).lets_dependants_start for one in self.needs[name]
        )

    def _sorted(self) -> list[str]:
        place = {name: at for at, name in enumerate(self.needs)}
        names = list(self.needs)
        missing = {name: len(set(needed)) for name, needed in self.needs.items()}
        free = [place[name] for name in names if not missing[name]]
        ordered: list[str] = []
        while free:
            name = names[heapq.heappop(free)]
            ordered.append(name)
            for one in self.dependants[name]:
                missing[one] -= 1
                if not missing[one]:
                    heapq.heappush(free, place[one])
        return ordered

    @staticmethod
    def _reach(starts: Iterable[str], steps: Mapping[str, Sequence[str]]) -> set[str]:
        """Return what can be reached in one step or more."""
        found: set[str] = set()
        open_ends = list(starts)
        while open_ends:
            fresh = [one for one in steps[open_ends.pop()] if one not in found]
            found.update(fresh)
            open_ends += fresh
        return found


@dataclass(frozen=True, slots=True)
class Instance:
    """One member of a fan-out: `lint[0]` for a list, `lint[api]` for a mapping."""

    id: str
    node: str
    #: The position in the list, or the key in the mapping.
    key: int | str
    item: Any


#: More members than this in one fan-out is a slip of the pen.
ITEMS_MAX: Final = 10_000


def expand(node: str, items: Any, *, items_max: int = ITEMS_MAX) -> tuple[Instance, ...]:
    """Return one instance for each item of a list or mapping; null, from a skipped node, has none.

    Ids depend on the node and the position or key alone, so they are the same after a restart.
    """
    if items is None:
        return ()
    if not isinstance(items, list | tuple | Mapping):
        raise RequestError(
            f"`for_each` of node `{node}` needs a list or a mapping, got {type(items).__name__}",
            code="CA1101",
            hint="Let the node that it reads from have `outputs: json` or `outputs: lines`",
        )
    if len(items) > items_max:
        raise RequestError(
            f"`for_each` of node `{node}` may have at most {items_max:,} items, got {len(items):,}",
            code="CA1101",
            hint="Raise its `items_max`, or hand it fewer items",
        )
    pairs = items.items() if isinstance(items, Mapping) else enumerate(items)
    return tuple(Instance(f"{node}[{key}]", node, key, item) for key, item in pairs)


def state_of(instances: Sequence[Instance], states: States) -> NodeState:
    """Fold the states of a fan-out into one: done when all have ended and none failed.

    A failure shows at once, so that nobody waits for the rest; no instances at all are done.
    """
    told = {states.get(one.id, NodeState.WAITING) for one in instances}
    for worst in (NodeState.FAILED, NodeState.CONFLICTED, NodeState.CANCELLED):
        if worst in told:
            return worst
    if told == {NodeState.SKIPPED}:
        return NodeState.SKIPPED
    if told <= {NodeState.DONE, NodeState.SKIPPED}:
        return NodeState.DONE
    return NodeState.WAITING if told == {NodeState.WAITING} else NodeState.RUNNING


def joined(instances: Sequence[Instance], outputs: Mapping[str, Any]) -> Any:
    """Return the outputs as a dependant sees them, in declared order and not in that of arrival.

    A list for a fan-out over a list, a mapping for one over a mapping; what was skipped is null.
    """
    if instances and isinstance(instances[0].key, str):
        return {one.key: outputs.get(one.id) for one in instances}
    return [outputs.get(one.id) for one in instances]
