"""A plan as a value: a goal, its graph of nodes, and what holds for all of them.

Each field stands here once, with its rule and its description. What breaks a rule is refused at
birth with CA1101, whether it was written in a file or in Python:

    Plan(goal="Tidy up", nodes=(Node(name="lint", actor=CommandActor(("ruff", "check"))),))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.conditions import Condition, Reference, did_you_mean
from cleveragents.domain.plan_actors import (
    ACTOR,
    CHECK,
    SHELL_TEMPLATE,
    Actor,
    Check,
    CommandActor,
    DeleteStep,
    EditStep,
    FailStep,
    LlmActor,
    PrintStep,
    PythonActor,
    ScriptedActor,
    SleepStep,
    SpendStep,
    WriteStep,
)
from cleveragents.domain.plan_collections import Either, FrozenMap, Listed, Literal, Mapped
from cleveragents.domain.plan_graph import Graph
from cleveragents.domain.plan_mcp import MCP, McpServer
from cleveragents.domain.plan_options import (
    ATTEMPTS,
    ENV,
    KEY,
    NAME,
    TIMEOUT,
    WORD,
    ApplyMode,
    Budget,
    BudgetLimit,
    Capture,
    ContextWish,
    ForEach,
    NodeBudget,
    OnFailure,
    Recovery,
)
from cleveragents.domain.plan_records import (
    PlanValue,
    Record,
    assembled,
    references_of,
    spec,
    specs_of,
)
from cleveragents.domain.plan_rules import (
    At,
    Choice,
    Findings,
    Flag,
    JsonSchema,
    Number,
    Question,
    Rule,
    Text,
    TreePath,
)
from cleveragents.domain.plan_wiring import check_wiring

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "NODES_MAX",
    "PLAN",
    "ApplyMode",
    "Budget",
    "BudgetLimit",
    "Capture",
    "Check",
    "CommandActor",
    "ContextWish",
    "Defaults",
    "DeleteStep",
    "EditStep",
    "FailStep",
    "ForEach",
    "LlmActor",
    "McpServer",
    "Node",
    "NodeBudget",
    "OnFailure",
    "Plan",
    "PrintStep",
    "PythonActor",
    "Recovery",
    "ScriptedActor",
    "SleepStep",
    "SpendStep",
    "WriteStep",
]

NODES_MAX: Final = 10_000
_DEADLINE_S_MAX: Final = 2_592_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(PlanValue):
    """One unit of work; what is None here is taken from the plan's `defaults`."""

    name: str = spec(NAME, "what the node is called; in a mapping of nodes it is the key")
    actor: Actor | None = spec(ACTOR, "who does the work; that of `defaults` by default", None)
    needs: tuple[str, ...] = spec(
        Listed(NAME, "names of nodes", size_max=NODES_MAX), "nodes that must be done before", ()
    )
    inputs: Mapping[str, Any] = spec(
        Mapped(WORD, Literal(), "names to values"),
        "values for the actor; `${nodes.NAME.output}` takes one from a node upstream",
        FrozenMap(),
    )
    outputs: Capture | tuple[str, ...] = spec(
        Either(Choice(Capture), Listed(KEY, "keys")),
        "what the printed output is; a list names the keys of a JSON object that must be there",
        Capture.TEXT,
    )
    for_each: ForEach | None = spec(
        Record(ForEach, short="over"), "run the node once for each item", None
    )
    when: Condition | None = spec(
        Question(), "run only if this holds, asked for each item; else it is skipped", None
    )
    context: ContextWish | None = spec(
        Record(ContextWish), "what the actor should see of the tree", None
    )
    tools: tuple[str, ...] | None = spec(
        Listed(Text("a name", chars_max=200), "names of tools"),
        "tools that the actor may use; all it knows by default",
        None,
    )
    mcp: Mapping[str, McpServer] = spec(
        MCP, "servers of further tools, beside those of the plan", FrozenMap()
    )
    folder: str = spec(
        TreePath("the path of a folder inside the tree, or `.`", root_too=True),
        "where in the tree the actor starts",
        ".",
    )
    writes: tuple[str, ...] | None = spec(
        Listed(TreePath("a pattern of paths inside the tree, such as `src/**`"), "patterns"),
        "paths that the node may change; all by default",
        None,
    )
    env: Mapping[str, str] = spec(
        ENV, "variables for commands, beside those of `defaults`", FrozenMap()
    )
    network: bool | None = spec(Flag(), "whether commands may use the network", None)
    timeout_s: float | None = spec(TIMEOUT, "how long one attempt may take", None)
    attempts_max: int | None = spec(ATTEMPTS, "how often to try, the first time included", None)
    on_failure: OnFailure | None = spec(
        Choice(OnFailure), "stop the plan when the node has failed, or go on with the rest", None
    )
    recovery: Recovery | None = spec(
        Record(Recovery), "what to do about faults, where it differs from the usual", None
    )
    budget: NodeBudget | None = spec(
        Record(NodeBudget), "what all attempts of the node together may spend", None
    )
    check: Check | None = spec(CHECK, "a command that must pass before the node is done", None)

    @classmethod
    def settle(cls, values: dict[str, Any], at: At, found: Findings) -> None:
        """Check that each template uses what the node has."""
        for place, reference in references_of(cls, values, at):
            says = _scope_mistake(reference, str(place[len(at)]), values)
            if says:
                found.add(place, f"`{reference.text}` {says}")
        item = values["for_each"] and values["for_each"].item_name
        for key in ("actor", "check"):
            command = getattr(values[key], "command", None)
            if item and isinstance(command, str) and re.search(rf"\$\{{\s*{item}\b", command):
                found.add((*at, key), SHELL_TEMPLATE)


def _scope_mistake(reference: Reference, part: str, values: Mapping[str, Any]) -> str | None:
    """Say why a reference has no value in a part of a node; other nodes are the plan's matter."""
    if reference.root == "nodes":
        return None
    roots = ["nodes", "plan"]
    if part != "for_each":
        roots += [values["for_each"].item_name] if values["for_each"] else []
        roots += ["inputs"] if part != "inputs" else []
    if reference.root not in roots:
        if reference.root == "inputs":
            return f"cannot stand in `{part}`: the inputs are not known there yet"
        known = ", ".join(f"`{root}`" for root in roots)
        return (
            f"is not known in `{part}`, which knows {known}{did_you_mean(reference.root, roots)}"
            "; write `$${` for a plain `${`"
        )
    if reference.root == "plan" and reference.keys not in {("goal",), ("name",)}:
        return "is not known; a plan has `plan.goal` and `plan.name`"
    if reference.root == "inputs" and reference.keys[:1] not in [
        (key,) for key in values["inputs"]
    ]:
        name = reference.keys[0] if reference.keys else ""
        return f"is none of the node's inputs{did_you_mean(name, values['inputs'])}"
    return None


_NODE: Final = Record(Node)


def _references(node: Node) -> Iterator[tuple[At, Reference]]:
    return _NODE.references(node, ("nodes", node.name))


class Nodes(Rule):
    """The nodes of a plan: a mapping by name, or a list in which each has a `name`."""

    says = "a mapping of nodes by name, or a list of nodes"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take both forms, and drafts of nodes that break a rule."""
        if not isinstance(value, Mapping | list | tuple):
            return self.refuse(value, at, found)
        if not 1 <= len(value) <= NODES_MAX:
            return found.add(at, f"A plan must have 1 to {NODES_MAX:,} nodes, got {len(value):,}")
        if isinstance(value, Mapping):
            nodes = [self._read_named(name, one, (*at, name), found) for name, one in value.items()]
        else:
            nodes = [_NODE.read(one, (*at, i), found) for i, one in enumerate(value)]
        return tuple(node for node in nodes if node is not None)

    def _read_named(self, name: object, value: Any, at: At, found: Findings) -> Any:
        if not isinstance(value, Mapping):
            return _NODE.refuse(value, at, found)
        if "name" in value:
            says = "`name` must not be there: the key of the mapping is the name"
            found.add((*at, "name"), says, on_key=True)
        since = len(found.mistakes)
        node = _NODE.read({**value, "name": name}, at, found)
        found.move(since, (*at, "name"), at)
        return node

    def plain(self, value: tuple[Node, ...]) -> dict[str, Any]:
        """Write a mapping."""
        told = [_NODE.plain(node) for node in value]
        return {one.pop("name"): one for one in told}

    def schema(self) -> JsonSchema:
        """Return both forms."""
        node = _NODE.schema()
        named = {"allOf": [node, {"required": ["name"]}]}
        keyed = {"allOf": [node, {"not": {"required": ["name"]}}]}
        return {
            "anyOf": [
                {
                    "type": "object",
                    "propertyNames": NAME.schema(),
                    "additionalProperties": keyed,
                    "minProperties": 1,
                    "maxProperties": NODES_MAX,
                },
                {"type": "array", "items": named, "minItems": 1, "maxItems": NODES_MAX},
            ]
        }

    def parts(self) -> tuple[Rule, ...]:
        """Return the rule of one node."""
        return (_NODE,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults(PlanValue):
    """What holds for each node that does not say otherwise; templates stand in nodes alone."""

    actor: Actor | None = spec(ACTOR, "who does the work", None)
    timeout_s: float = spec(TIMEOUT, "how long one attempt may take", 600.0)
    attempts_max: int = spec(ATTEMPTS, "how often to try, the first time included", 3)
    on_failure: OnFailure | None = spec(
        Choice(OnFailure), "what the failure of a node means; that of the plan by default", None
    )
    check: Check | None = spec(CHECK, "a command that must pass before a node is done", None)
    network: bool = spec(Flag(), "whether commands may use the network", False)
    env: Mapping[str, str] = spec(ENV, "variables for commands", FrozenMap())

    @classmethod
    def settle(cls, values: dict[str, Any], at: At, found: Findings) -> None:
        """Refuse templates: what one node has, another has not."""
        for place, reference in references_of(cls, values, at):
            says = "must stand in a node: `defaults` hold for all; write `$${` for a plain `${`"
            found.add(place, f"`{reference.text}` {says}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(PlanValue):
    """A goal and its graph; a plan that exists has passed every rule."""

    name: str | None = spec(NAME, "what the plan is called", None)
    goal: str = spec(Text("text that says something", chars_max=10_000), "what the plan is for")
    budget: Budget | None = spec(Record(Budget), "what may be spent", None)
    at_once: int = spec(Number(1, 256, "nodes", whole=True), "how many nodes run at once", 8)
    deadline_s: float | None = spec(
        Number(0, _DEADLINE_S_MAX, "seconds"), "how long the whole plan may take", None
    )
    on_failure: OnFailure = spec(
        Choice(OnFailure), "stop when a node has failed, or go on with the rest", OnFailure.STOP
    )
    apply: ApplyMode = spec(
        Choice(ApplyMode),
        "put the changes into the tree: after a question, at once, or not",
        ApplyMode.ASK,
    )
    mcp: Mapping[str, McpServer] = spec(
        MCP, "servers of further tools for the models of all nodes", FrozenMap()
    )
    defaults: Defaults = spec(Record(Defaults), "what holds for each node", Defaults())
    nodes: tuple[Node, ...] = spec(Nodes(), "the graph: each node with its actor and its needs")

    @classmethod
    def settle(cls, values: dict[str, Any], at: At, found: Findings) -> None:  # noqa: ARG003  # a plan is the top
        """Check what is between nodes."""
        check_wiring(values["nodes"] or (), values["defaults"].actor, _references, found)

    @property
    def graph(self) -> Graph:
        """Who needs whom, made anew for each caller."""
        return Graph({node.name: node.needs for node in self.nodes})

    @property
    def runs_commands(self) -> bool:
        """Say whether a node has a command to run; functions and models may run others."""
        usual = self.defaults
        return any(
            (node.check or usual.check) is not None
            or isinstance(node.actor or usual.actor, CommandActor)
            for node in self.nodes
        )

    @property
    def may_touch_files(self) -> bool:
        """Say whether a node could look at the tree; a script whose steps name no file cannot."""
        usual = self.defaults
        return any(
            (node.check or usual.check) is not None or _uses_files(node.actor or usual.actor)
            for node in self.nodes
        )

    def resolved(self) -> dict[str, Node]:
        """Return each node by its name, with what it takes from `defaults` and the plan."""
        return {node.name: self._resolved(node) for node in self.nodes}

    def _resolved(self, node: Node) -> Node:
        values = {one.name: getattr(node, one.name) for one in specs_of(Node)}
        for one in specs_of(Defaults):
            if values[one.name] is None:
                values[one.name] = getattr(self.defaults, one.name)
        values["on_failure"] = values["on_failure"] or self.on_failure
        values["env"] = FrozenMap({**self.defaults.env, **node.env})
        values["mcp"] = FrozenMap({**self.mcp, **node.mcp})
        resolved = assembled(Node, values)
        assert isinstance(resolved, Node)
        return resolved


def _uses_files(actor: Actor | None) -> bool:
    if not isinstance(actor, ScriptedActor):
        return True
    return any(isinstance(step, WriteStep | EditStep | DeleteStep) for step in actor.steps)


#: The whole of a plan file, from which reading, writing, the schema and the reference are made.
PLAN: Final = Record(Plan)
