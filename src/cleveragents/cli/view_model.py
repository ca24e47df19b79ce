"""What a view knows of a run: a plain fold of its events, without a clock, a terminal or a store.

The same events at the same times always give the same model, whoever shows it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cleveragents.cli.table import one_line
from cleveragents.domain.error_record import Action
from cleveragents.domain.money import Money
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.run_events import (
    AttemptFailed,
    NodeFinished,
    NodeStarted,
    PlanEnded,
    PlanStarted,
    SpendChanged,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cleveragents.application.run_journal import NodeRecord
    from cleveragents.domain.plan import Plan
    from cleveragents.domain.run_events import RunEvent

#: What does the work once more.
_AGAIN: Final = frozenset({Action.RETRY, Action.FEEDBACK, Action.SHRINK, Action.FALL_BACK})
_RUNNING: Final = frozenset({NodeState.RUNNING, NodeState.MERGING})


@dataclass(slots=True)
class NodeView:
    """What is known of a node, or of one instance of a fan-out."""

    id: str
    node: str
    state: NodeState = NodeState.WAITING
    attempt: int = 0
    #: When its latest attempt began, and when it ended.
    began: float | None = None
    ended: float | None = None
    spent: Money = field(default_factory=lambda: Money(0))
    #: How many files it changed; None while that is not known.
    files: int | None = None
    #: Why its latest attempt failed.
    fault: str = ""
    #: When it is tried again.
    again_at: float | None = None
    #: The last line that its actor told.
    said: str = ""

    @property
    def is_running(self) -> bool:
        """Say whether an attempt at it runs."""
        return self.state in _RUNNING

    def elapsed_s(self, now: float) -> float | None:
        """Return how long its latest attempt has taken; None when there was none."""
        if self.began is None:
            return None
        return max(0.0, (now if self.ended is None else self.ended) - self.began)


@dataclass(slots=True)
class RunModel:
    """A run as its events tell it; `kept` and `spent` are what earlier runs of the plan left."""

    plan_id: str
    plan: Plan
    budget: Money | None = None
    kept: Iterable[NodeRecord] = ()
    spent: Money = field(default_factory=lambda: Money(0))
    began: float | None = None
    ended: float | None = None
    #: The state of the plan when the run was over.
    end: str | None = None
    nodes: dict[str, NodeView] = field(init=False)
    #: What failed, in the order in which it did.
    failed: dict[str, NodeView] = field(init=False, default_factory=dict)
    attempts_max: dict[str, int] = field(init=False)
    _fan_outs: dict[str, list[str]] = field(init=False)
    #: How many members each fan-out has, where that is known.
    _sizes: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        resolved = self.plan.resolved()
        self.attempts_max = {name: node.attempts_max or 1 for name, node in resolved.items()}
        self._fan_outs = {one.name: [] for one in self.plan.nodes if one.for_each is not None}
        self._sizes = {
            one.name: len(one.for_each.over)
            for one in self.plan.nodes
            if one.for_each is not None and not isinstance(one.for_each.over, str)
        }
        self.nodes = {one.name: NodeView(one.name, one.name) for one in self.plan.nodes}
        for record in self.kept:
            self._keep(record)

    # -- taking ----------------------------------------------------------------------------

    def take(self, event: RunEvent, at: float, files: int | None = None) -> NodeView | None:
        """Take an event into account; return the node that it is about."""
        match event:
            case PlanStarted():
                self._begin(at)
                return None
            case PlanEnded():
                self._stop_waiting_for_attempts()
                self.ended, self.end = at, str(event.state)
                return None
        one = self._node(event.node)
        match event:
            case NodeStarted():
                one.state, one.attempt = NodeState.RUNNING, event.attempt
                one.began, one.ended, one.again_at, one.said = at, None, None, ""
                if event.members:
                    self._sizes[one.node] = event.members
                self.failed.pop(one.id, None)
            case AttemptFailed():
                one.ended, one.fault = at, one_line(event.message)
                one.state = NodeState.FAILED
                if event.action in _AGAIN:
                    one.state, one.again_at = NodeState.WAITING, at + event.delay_s
            case NodeFinished():
                self._finish(one, event, at, files)
            case SpendChanged():
                one.spent += event.amount
                self.spent += event.amount
            case _:
                one.said = one_line(event.text).strip()
        return one

    def _begin(self, at: float) -> None:
        # What still runs died with an earlier run.
        self._stop_waiting_for_attempts()
        self.began, self.ended, self.end = at, None, None

    def _stop_waiting_for_attempts(self) -> None:
        """Let what runs wait for another attempt: no event tells that one was broken off."""
        for one in self.nodes.values():
            if one.is_running:
                one.state, one.began = NodeState.WAITING, None

    def _finish(self, one: NodeView, event: NodeFinished, at: float, files: int | None) -> None:
        one.state, one.attempt, one.again_at = event.state, event.attempt, None
        one.files = files
        if one.ended is None:
            one.ended = at
        if event.state.stops_dependants:
            self.failed.pop(one.id, None)
            self.failed[one.id] = one

    def _keep(self, record: NodeRecord) -> None:
        one = self._node(record.id)
        state = record.state
        one.state = NodeState.WAITING if state is NodeState.RUNNING else state
        one.attempt = record.attempt
        one.fault = one_line(str((record.error or {}).get("message", "")))
        if one.state.stops_dependants:
            self.failed[one.id] = one

    def _node(self, name: str) -> NodeView:
        """Return a node; an instance of a fan-out is known from its first event on."""
        known = self.nodes.get(name)
        if known is None:
            node = name.partition("[")[0]
            known = self.nodes[name] = NodeView(name, node)
            self._fan_outs.setdefault(node, []).append(name)
        return known

    # -- asking ----------------------------------------------------------------------------

    def rows(self) -> Iterator[NodeView]:
        """Yield each node in declared order; a fan-out as its instances, once they are known."""
        for node in self.plan.nodes:
            instances = self._fan_outs.get(node.name)
            if instances:
                yield from (self.nodes[one] for one in instances)
            elif instances is None or self.end != "done":
                yield self.nodes[node.name]
            # What is left is a fan-out over nothing, which is done without a word.

    def counts(self) -> Counter[NodeState]:
        """Return how many nodes there are in each state; members that never began wait."""
        counts = Counter(one.state for one in self.rows())
        if self.end != "done":
            counts[NodeState.WAITING] += sum(self._unseen(name) for name in self._fan_outs)
        return +counts

    def _unseen(self, fan_out: str) -> int:
        """Return how many members of a fan-out have no row; before the first, its node has one."""
        return max(0, self._sizes.get(fan_out, 0) - max(1, len(self._fan_outs[fan_out])))

    def waits_for(self, one: NodeView) -> str:
        """Say what a node that did not start yet waits for."""
        needs = next((node.needs for node in self.plan.nodes if node.name == one.node), ())
        stopped = [need for need in needs if self._state_of(need).stops_dependants]
        if stopped:
            return f"cannot start: {stopped[0]} {self._state_of(stopped[0])}"
        missing = [need for need in needs if not self._state_of(need).lets_dependants_start]
        if not missing:
            return "waits for its turn" if self.end is None else ""
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return f"waits for {missing[0]}{more}"

    def _state_of(self, name: str) -> NodeState:
        """Return the state of a node; of a fan-out only its failures are known for certain."""
        instances = self._fan_outs.get(name)
        if instances is None:
            return self.nodes[name].state
        states = {self.nodes[one].state for one in (*instances, name)}
        return next((one for one in states if one.stops_dependants), NodeState.RUNNING)


def run_length_s(model: RunModel, now: float) -> float:
    """Return how long a run has taken."""
    if model.began is None:
        return 0.0
    return max(0.0, (now if model.ended is None else model.ended) - model.began)
