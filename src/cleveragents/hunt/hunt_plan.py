"""A hunt as an ordinary plan: a node for each candidate, then one for each file to mend."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.conditions import as_meant, as_written
from cleveragents.domain.error_record import SAME_AGAIN, Action, ErrorCategory
from cleveragents.domain.plan import (
    ApplyMode,
    Budget,
    Check,
    Defaults,
    ForEach,
    LlmActor,
    Node,
    OnFailure,
    Plan,
    PythonActor,
    Recovery,
)
from cleveragents.hunt.nodes import COLLECT, MEND, OBSERVE, PROVE, PROVE_BUILT, UNBUILT
from cleveragents.hunt.records import candidate_from, to_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cleveragents.domain.money import Money
    from cleveragents.hunt.candidate import Candidate

__all__ = ["NAME", "Game", "HuntOptions", "Wishes", "game_of", "hunt_plan", "is_hunt"]

#: By which a kept plan is known to be a hunt.
NAME: Final = "hunt"
_GOAL: Final = "Find the data races of this code, prove each, and mend what is proven"
#: What a model is asked for a class that nothing known can build.
_HOW: Final = (
    "Objects of the class `${candidate.owner}` of the module `${candidate.module}`, in the file"
    " `${candidate.path}`, are to be called by several threads at once, to see if that is safe."
    " Read the file, and what you need besides. Then give one Python expression that builds a small"
    " object of it that works: no network, no files, no threads, no waiting; stand-ins are fine."
    " It is evaluated in the scope of that module."
)
#: A hunt goes on without what a model could not do.
_WITHOUT_MODEL: Final = (
    ErrorCategory.BAD_OUTPUT,
    ErrorCategory.CHECK_FAILED,
    ErrorCategory.LOOP,
    ErrorCategory.UNKNOWN,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntOptions:
    """How every candidate of a hunt is tried."""

    #: The interpreter that runs the user's code; ours must be installed for it.
    python: str
    #: How long to search for an interleaving of one candidate.
    budget_s: float = 20.0
    #: A file of the tree that says how to build objects; None where there is none.
    factories: str | None = None
    memory_bytes_max: int = 4_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """What a hunt is after: the candidates, and what reading the source told besides."""

    candidates: tuple[Candidate, ...]
    modules: int = 0
    #: Files that were not read, and why.
    skipped: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a hunt does besides proving."""

    #: Offer fixes; each must pass the check, if there is one.
    fix: bool = False
    check: tuple[str, ...] | None = None
    #: Runs tests, from whose calls arguments are learned.
    observe: tuple[str, ...] | None = None
    #: Writes how to build what nothing else can build, for at most the budget.
    model: str | None = None
    base_url: str | None = None
    budget: Money | None = None
    at_once: int = 2


_NO_WISHES: Final = Wishes()


def hunt_plan(game: Game, options: HuntOptions, wishes: Wishes = _NO_WISHES) -> Plan:
    """Return the plan; a candidate that cannot be judged, or mended, is skipped and recorded."""
    told = as_written(asdict(options))
    skip = Recovery(cures=dict.fromkeys(SAME_AGAIN, (Action.SKIP,)))
    nodes = [_prove(game, told, skip, has_seen=wishes.observe is not None)]
    if wishes.observe is not None:
        inputs = {"command": as_written(wishes.observe), "python": told["python"]}
        observe = Node(
            name="observe", actor=PythonActor(OBSERVE), inputs=inputs, writes=(), recovery=skip
        )
        nodes.append(observe)
    if wishes.model is not None:
        nodes += _building(told, wishes, skip)
    if wishes.fix:
        nodes += _mending(told, wishes, skip)
    return Plan(
        name=NAME,
        goal=_GOAL,
        at_once=wishes.at_once,
        budget=None if wishes.budget is None else Budget(max_usd=wishes.budget),
        on_failure=OnFailure.CONTINUE,
        apply=ApplyMode.ASK if wishes.fix else ApplyMode.NEVER,
        defaults=Defaults(attempts_max=1),
        nodes=tuple(nodes),
    )


def _prove(game: Game, told: Any, skip: Recovery, *, has_seen: bool) -> Node:
    over = {name: as_written(to_record(one)) for name, one in _named(game.candidates).items()}
    most = max(1, len(game.candidates))
    return Node(
        name="prove",
        actor=PythonActor(PROVE),
        needs=("observe",) if has_seen else (),
        for_each=ForEach(over=over, item_name="candidate", items_max=most),
        inputs={
            "candidate": "${candidate}",
            "python": told["python"],
            "options": _limits(told),
            "read": as_written({"modules": game.modules, "skipped": dict(game.skipped)}),
            **({"seen": "${nodes.observe.output}"} if has_seen else {}),
        },
        writes=(),
        recovery=skip,
    )


def _building(told: Any, wishes: Wishes, skip: Recovery) -> tuple[Node, Node, Node]:
    """Let a model write how to build what nothing known can build, and prove that."""
    assert wishes.model is not None, "asked only with a model"
    asked = LlmActor(model=wishes.model, base_url=wishes.base_url, prompt=_HOW, turns_max=12)
    over = "${nodes.unbuilt.output}"
    return (
        Node(
            name="unbuilt",
            actor=PythonActor(UNBUILT),
            needs=("prove",),
            inputs={"findings": "${nodes.prove.output}"},
            writes=(),
        ),
        Node(
            name="factory",
            actor=asked,
            needs=("unbuilt",),
            for_each=ForEach(over=over, item_name="candidate"),
            outputs=("expression",),
            writes=(),
            recovery=Recovery(cures=dict.fromkeys(_WITHOUT_MODEL, (Action.SKIP,))),
        ),
        Node(
            name="built",
            actor=PythonActor(PROVE_BUILT),
            needs=("factory", "unbuilt"),
            for_each=ForEach(over=over, item_name="candidate"),
            inputs={
                "candidate": "${candidate}",
                "factories": "${nodes.factory.output}",
                "python": told["python"],
                "options": _limits(told),
            },
            writes=(),
            recovery=skip,
        ),
    )


def _mending(told: Any, wishes: Wishes, skip: Recovery) -> tuple[Node, Node]:
    check, has_built = wishes.check, wishes.model is not None
    return (
        Node(
            name="collect",
            actor=PythonActor(COLLECT),
            needs=("prove", "built") if has_built else ("prove",),
            inputs={
                "findings": "${nodes.prove.output}",
                **({"again": "${nodes.built.output}"} if has_built else {}),
            },
            writes=(),
        ),
        Node(
            name="mend",
            actor=PythonActor(MEND),
            needs=("collect",),
            for_each=ForEach(over="${nodes.collect.output}", item_name="findings"),
            inputs={
                "findings": "${findings}",
                "python": told["python"],
                "options": _limits(told),
            },
            check=None if check is None else Check(as_written(check)),
            recovery=skip,
        ),
    )


def _limits(told: Any) -> Any:
    return {name: value for name, value in told.items() if name != "python"}


def is_hunt(plan: Plan) -> bool:
    """Say whether a kept plan is a hunt."""
    return plan.name == NAME and plan.nodes[0].name == "prove"


def game_of(plan: Plan) -> dict[str, Candidate]:
    """Return the candidates of a kept plan by the instance of a node that judges each."""
    (prove,) = (node for node in plan.nodes if node.name == "prove")
    assert prove.for_each is not None, "a hunt goes over candidates"
    return {
        f"prove[{name}]": candidate_from(as_meant(record))
        for name, record in prove.for_each.over.items()
    }


def _named(candidates: Sequence[Candidate]) -> dict[str, Candidate]:
    """Return the candidates by a name that a person knows, each once."""
    names: dict[str, Candidate] = {}
    for one in candidates:
        names[one.name if one.name not in names else f"{one.name} {one.id}"] = one
    return names
