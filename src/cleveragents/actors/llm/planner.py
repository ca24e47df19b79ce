"""The planner: a model that reads a tree and answers with a plan, which must keep every rule."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cleveragents.actors.json_value import output_error
from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan import (
    ApplyMode,
    Budget,
    CommandActor,
    ContextWish,
    Defaults,
    LlmActor,
    Node,
    Plan,
)
from cleveragents.domain.plan_rules import Findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cleveragents.application.attempts import Actor, ActorResult, AttemptContext
    from cleveragents.domain.errors import SandboxError
    from cleveragents.domain.money import Money
    from cleveragents.domain.plan_actors import Actor as ActorValue
    from cleveragents.domain.plan_rules import At

#: The name of the plan that makes a plan, and of its only node.
NAME: Final = "write-the-plan"
#: It looks, and changes nothing.
TOOLS: Final = ("read_file", "list_files", "search_text", "context")
TRIES_MAX: Final = 3
_TOKENS_MAX: Final = 16_384
_FENCED: Final = re.compile(r"^```[\w-]*[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a user wants planned, and the model that plans it and works on it."""

    goal: str
    model: str
    base_url: str | None = None
    budget: Money | None = None

    @classmethod
    def of(cls, plan: Plan, budget: Money | None) -> Wish:
        """Return the wish behind a plan that `planning` made, with the budget it has now."""
        actor = plan.nodes[0].actor
        assert isinstance(actor, LlmActor), "a plan of this name asks a model"
        return cls(goal=plan.goal, model=actor.model, base_url=actor.base_url, budget=budget)


def planning(wish: Wish, orders: str, *, may_ask: bool) -> Plan:
    """Return the plan whose one node writes the plan that is wished for."""
    actor = LlmActor(
        wish.model,
        "Write the plan file for the goal above.",
        system=_literal(orders),
        base_url=wish.base_url,
        tokens_max=_TOKENS_MAX,
    )
    node = Node(
        name=NAME,
        actor=actor,
        tools=(*TOOLS, "ask") if may_ask else TOOLS,
        writes=(),
        context=ContextWish(),
        attempts_max=TRIES_MAX,
    )
    budget = None if wish.budget is None else Budget(max_usd=wish.budget)
    return Plan(name=NAME, goal=wish.goal, budget=budget, apply=ApplyMode.NEVER, nodes=(node,))


def is_planning(plan: Plan) -> bool:
    """Say whether a plan is one that makes a plan."""
    names = [(node.name, type(node.actor)) for node in plan.nodes]
    return plan.name == NAME and names == [(NAME, LlmActor)]


@dataclass(frozen=True, slots=True)
class Planner:
    """An actor whose answer must be a plan; its mistakes are told to the next attempt."""

    inner: Actor
    read: Callable[[str], object]

    def run(self, attempt: AttemptContext) -> ActorResult:
        """Let the model answer, and read what it wrote as a plan."""
        result = self.inner.run(attempt)
        try:
            self.read(str(result.output))
        except RequestError as error:
            raise _refused(error) from None
        return result


def _refused(error: RequestError) -> SandboxError:
    refused = output_error(
        f"The answer of the planner is no plan that can be run: {error.message}",
        "the planner",
        hint="Ask for less at once, or write the plan yourself",
    )
    # Told to the model with the message: every mistake, each with its place.
    mistakes = [f"- {place}: {says}" for place, says in error.facts.items()]
    refused.facts["output"] = "\n".join(
        [*mistakes, "Answer with the whole corrected plan file, and nothing else."]
    )
    return refused


def plan_text(answer: str) -> str:
    """Return the plan file in an answer: what is fenced, or all of it."""
    fenced = _FENCED.findall(answer)
    return max(fenced, key=len) if fenced else answer


def settled(plan: Plan, wish: Wish, left: Money | None) -> Plan:
    """Return a model's plan as the user's: the goal in their words, and their model and money.

    A model chooses the work. It chooses no other model or server, no budget, no way past the
    sandbox, and not that its work is applied: those are refused or put right.
    """
    found = Findings()
    for at, part in _parts(plan):
        _refuse_reach(part, at, found)
    if plan.mcp:
        found.add(("mcp",), "`mcp` must not be there: only the user names servers")
    found.raise_if_any("plan")
    return replace(
        plan,
        goal=wish.goal,
        budget=None if left is None else Budget(max_usd=left),
        apply=ApplyMode.ASK,
        defaults=replace(plan.defaults, actor=_of_wish(plan.defaults.actor, wish)),
        nodes=tuple(replace(node, actor=_of_wish(node.actor, wish)) for node in plan.nodes),
    )


def _parts(plan: Plan) -> Iterator[tuple[At, Node | Defaults]]:
    yield ("defaults",), plan.defaults
    yield from ((("nodes", node.name), node) for node in plan.nodes)


def _refuse_reach(part: Node | Defaults, at: At, found: Findings) -> None:
    if part.actor is not None and not isinstance(part.actor, CommandActor | LlmActor):
        found.add((*at, "actor"), "`actor` must be one of `llm`, `command`")
    if part.network:
        found.add((*at, "network"), "`network` must not be true: only the user allows that")
    if isinstance(part, Node) and part.mcp:
        found.add((*at, "mcp"), "`mcp` must not be there: only the user names servers")


def _of_wish(actor: ActorValue | None, wish: Wish) -> ActorValue | None:
    if not isinstance(actor, LlmActor):
        return actor
    return replace(actor, model=wish.model, base_url=wish.base_url, fall_back=())


def _literal(text: str) -> str:
    """Return a text that a plan takes as it is: nothing in it is a template."""
    return text.replace("${", "$${")
