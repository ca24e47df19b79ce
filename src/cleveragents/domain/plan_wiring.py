"""What only a whole plan can get wrong: names, needs, loops, and outputs that nobody gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cleveragents.domain.conditions import did_you_mean
from cleveragents.domain.plan_actors import PythonActor
from cleveragents.domain.plan_graph import Graph
from cleveragents.domain.plan_options import Capture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cleveragents.domain.conditions import Reference
    from cleveragents.domain.plan import Node
    from cleveragents.domain.plan_rules import At, Findings

    References = Callable[[Node], Iterable[tuple[At, Reference]]]


def check_wiring(
    nodes: Sequence[Node], default_actor: Any, references: References, found: Findings
) -> None:
    """Note each mistake between nodes; drafts among them, whose fields may be None, are welcome."""
    named = _named(nodes, default_actor, found)
    graph = Graph(
        {name: [need for need in node.needs if need in named] for name, node in named.items()}
    )
    upstream = _Upstream(graph)
    if upstream.loop is not None:
        says = f"Nodes need each other in a loop: {' → '.join(upstream.loop)}"
        found.add(("nodes", upstream.loop[0], "needs"), says)
    for node in named.values():
        _check_needs(node, named, found)
        for at, reference in references(node):
            if reference.node is not None:
                wrong = _reference_mistake(reference, node, named, upstream) or _output_mistake(
                    at, reference, named[reference.node], default_actor
                )
                if wrong:
                    found.add(at, f"`{reference.text}` {wrong}")


def _named(nodes: Sequence[Node], default_actor: Any, found: Findings) -> dict[str, Node]:
    named: dict[str, Node] = {}
    for place, node in enumerate(nodes):
        name: str | None = node.name
        if name is None:
            continue
        if named.setdefault(name, node) is not node:
            found.add(("nodes", place, "name"), f"Two nodes are called `{name}`")
        if node.actor is None and default_actor is None:
            says = f"Node `{name}` has no actor, and `defaults` has none either"
            found.add(("nodes", name), says, on_key=True)
    return named


class _Upstream:
    """Who stands above whom: one bit for each node, so that 10,000 in a row are no burden."""

    def __init__(self, graph: Graph) -> None:
        self.loop = graph.loop()
        self._graph = graph
        self._bits = {name: 1 << place for place, name in enumerate(graph.needs)}
        self._above: dict[str, int] | None = None

    def holds(self, name: str, other: str) -> bool:
        """Say whether the other stands above; in a loop nobody can tell, so nobody complains."""
        if self.loop is not None or other in self._graph.needs[name]:
            return True
        if self._above is None:
            self._above = {}
            for one in self._graph.order():
                above = 0
                for need in self._graph.needs[one]:
                    above |= self._above[need] | self._bits[need]
                self._above[one] = above
        return bool(self._above[name] & self._bits[other])


def _check_needs(node: Node, named: Mapping[str, Node], found: Findings) -> None:
    for place, need in enumerate(node.needs):
        if need not in named:
            says = f"Node `{node.name}` needs `{need}`, which is no node of this plan"
            found.add(("nodes", node.name, "needs", place), says + did_you_mean(need, named))


def _reference_mistake(
    reference: Reference, node: Node, named: Mapping[str, Node], upstream: _Upstream
) -> str | None:
    other = str(reference.node)
    if other not in named:
        return f"uses `{other}`, which is no node of this plan{did_you_mean(other, named)}"
    if other == node.name:
        return "uses the node's own output, which is not there yet"
    if not upstream.holds(node.name, other):
        return f"uses `{other}`, which need not have run; add it to `needs` of `{node.name}`"
    return None


def _output_mistake(at: At, reference: Reference, node: Node, default_actor: Any) -> str | None:
    """Say what the output of a node cannot have; what a function returns is known only then."""
    keys = reference.keys[1:] if node.for_each is not None else reference.keys
    outputs = node.outputs
    if isinstance(outputs, tuple):
        if keys and keys[0] not in outputs:
            close = did_you_mean(keys[0], outputs)
            return f"has no value: `outputs` of `{node.name}` does not name `{keys[0]}`{close}"
    elif isinstance(node.actor or default_actor, PythonActor):
        return None
    elif outputs is Capture.TEXT and keys:
        return f"has no value: the output of `{node.name}` is text; let it have `outputs: json`"
    elif outputs is Capture.LINES and (len(keys) > 1 or not all(key.isdecimal() for key in keys)):
        return f"has no value: the output of `{node.name}` is a list of lines, such as `.output.0`"
    elif (
        outputs is Capture.TEXT
        and "for_each" in at
        and not reference.keys
        and node.for_each is None
    ):
        return (
            f"is text, and a fan-out needs a list; let `{node.name}` have `outputs: json` or"
            " `outputs: lines`"
        )
    return None
