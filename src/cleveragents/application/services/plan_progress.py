"""Which nodes of a plan may start, and what they see of each other; every edge is looked at once.

Pure bookkeeping of one run: no thread, no clock, no store. The coordinating thread owns it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cleveragents.application.services.node_rendering import references_in, rendered_items
from cleveragents.domain.errors import CleverAgentsError
from cleveragents.domain.plan_graph import Graph, Instance, NodeState, expand, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.application.run_journal import NodeRecord
    from cleveragents.domain.plan import Node, Plan

_SETTLED = frozenset({NodeState.DONE, NodeState.SKIPPED})


@dataclass(frozen=True, slots=True)
class Ready:
    """An instance that may start; with a fault, it can only fail with it.

    What is `kept` has its result already, and waits for its merge.
    """

    instance: Instance
    fault: CleverAgentsError | None = None
    kept: NodeRecord | None = None


@dataclass(slots=True)
class _Fan:
    """The instances of one node, and how many of them have not ended well yet."""

    instances: tuple[Instance, ...]
    open: int
    outputs: dict[str, Any] = field(default_factory=dict)
    skipped: int = 0


class PlanProgress:
    """What is done, what may start, and the outputs that later nodes see.

    `kept` is what earlier runs left: what is settled there is never handed out again.
    """

    def __init__(self, plan: Plan, kept: Mapping[str, NodeRecord]) -> None:
        self.plan = plan
        self.nodes = plan.resolved()
        self.ready: deque[Ready] = deque()
        self.settled = 0
        self.outputs: dict[str, Any] = {}
        self._kept = kept
        self._graph: Graph = plan.graph
        self._missing = {name: len(set(needs)) for name, needs in self._graph.needs.items()}
        self._fans: dict[str, _Fan] = {}
        self._free = deque(name for name, count in self._missing.items() if not count)
        self._release()

    def replace_plan(self, plan: Plan) -> None:
        """Go on with nodes that were changed; their places in the graph are the same."""
        self.plan = plan
        self.nodes = plan.resolved()

    def settle(self, instance_id: str, node: str, state: NodeState, output: Any = None) -> None:
        """Note that an instance is done or skipped, and find out who may start now."""
        self._settle(instance_id, node, state, output)
        self._release()

    def run_again(self, instance: Instance) -> None:
        """Hand an instance out once more; one whose items were never known is looked at anew."""
        if self._fans.get(instance.node) is None:
            self._free.append(instance.node)
            self._release()
        else:
            self.ready.append(Ready(instance))

    def size_of(self, name: str) -> int | None:
        """Return how many instances a node has; None while its items are not known."""
        fan, loop = self._fans.get(name), self.nodes[name].for_each
        if fan is not None:
            return len(fan.instances)
        if loop is None:
            return 1
        return None if isinstance(loop.over, str) else len(loop.over)

    @property
    def is_complete(self) -> bool:
        """Say whether every node is done or skipped."""
        return len(self.outputs) == len(self.nodes)

    def blocked(self) -> tuple[str, ...]:
        """Return the nodes that still wait for something that they need."""
        return tuple(name for name, missing in self._missing.items() if missing)

    def scope_of(self, instance: Instance) -> dict[str, Any]:
        """Return the values that templates and conditions of an instance may use."""
        node = self.nodes[instance.node]
        scope = self._scope(node)
        if node.for_each is not None:
            scope[node.for_each.item_name] = instance.item
        return scope

    def _scope(self, node: Node) -> dict[str, Any]:
        return {
            "nodes": {name: self.outputs.get(name) for name in references_in(node)},
            "plan": {"goal": self.plan.goal, "name": self.plan.name},
        }

    def _release(self) -> None:
        # A worklist, because a resumed chain of 10,000 finished nodes must not recurse.
        while self._free:
            name = self._free.popleft()
            node = self.nodes[name]
            single = Instance(name, name, 0, None)
            if node.for_each is None:
                instances: tuple[Instance, ...] = (single,)
            else:
                try:
                    items = rendered_items(node.for_each.over, self._scope(node))
                    instances = expand(name, items, items_max=node.for_each.items_max)
                except CleverAgentsError as fault:
                    self.ready.append(Ready(single, fault))
                    continue
            self._fans[name] = _Fan(instances, len(instances))
            if not instances:
                self._finish(name)
            for one in instances:
                self._hand_out(one)

    def _hand_out(self, instance: Instance) -> None:
        kept = self._kept.get(instance.id)
        if kept is not None and kept.state in _SETTLED:
            self._settle(instance.id, instance.node, kept.state, kept.output)
        elif kept is not None and kept.state in {NodeState.MERGING, NodeState.CONFLICTED}:
            self.ready.append(Ready(instance, kept=kept))
        else:
            self.ready.append(Ready(instance))

    def _settle(self, instance_id: str, node: str, state: NodeState, output: Any) -> None:
        fan = self._fans.get(node)
        if fan is None:
            # It failed before its items were known, and a person said to go on without it.
            fan = self._fans[node] = _Fan((Instance(node, node, 0, None),), 1)
        self.settled += 1
        fan.open -= 1
        fan.skipped += state is NodeState.SKIPPED
        fan.outputs[instance_id] = output
        if not fan.open:
            self._finish(node)

    def _finish(self, name: str) -> None:
        fan = self._fans[name]
        is_fan_out = self.nodes[name].for_each is not None
        all_skipped = bool(fan.instances) and fan.skipped == len(fan.instances)
        if all_skipped:
            self.outputs[name] = None
        elif is_fan_out:
            self.outputs[name] = joined(fan.instances, fan.outputs)
        else:
            self.outputs[name] = fan.outputs[name]
        for one in self._graph.dependants[name]:
            self._missing[one] -= 1
            if not self._missing[one]:
                self._free.append(one)
