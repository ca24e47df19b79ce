"""What came of a run, and what it says to a person."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.run_journal import PlanState
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import LimitError, SetupError
from cleveragents.domain.plan_graph import NodeState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.application.run_journal import NodeRecord

#: Commands must be confined and cannot be: that is the same for all of them.
NOT_CONFINED: Final = "CA5006"
#: How a hint ends whose cure stands in the plan: one that was begun is kept as it was.
ANEW: Final = "change the plan file, and run it anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a plan stands after a run; `nodes` is by the name of a node or of an instance."""

    plan_id: str
    state: PlanState
    exit_code: int
    error: Mapping[str, Any] | None = None
    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    #: By node; of a fan-out, those of all its instances in declared order.
    outputs: Mapping[str, Any] = field(default_factory=dict)
    #: Nodes that could not start, because something that they need did not end well.
    blocked: tuple[str, ...] = ()
    #: Threads of attempts that did not stop when asked, and still run.
    left_behind: int = 0

    def in_state(self, state: NodeState) -> tuple[str, ...]:
        """Return the nodes in a state."""
        return tuple(name for name, one in self.nodes.items() if one.state is state)

    @property
    def needs_person(self) -> tuple[str, ...]:
        """The nodes that wait for a person: to resolve a conflict, or to say how to go on."""
        return tuple(
            name
            for name, one in self.nodes.items()
            if one.state is NodeState.CONFLICTED
            or (one.state is NodeState.FAILED and (one.error or {}).get("action") == Action.ASK)
        )


def end_of(
    plan_id: str, nodes: Mapping[str, NodeRecord]
) -> tuple[PlanState, int, dict[str, Any] | None]:
    """Return the state, the exit code and the error of a run that has nothing left to start."""
    failed = [one for one in nodes.values() if one.state is NodeState.FAILED]
    conflicted = [one for one in nodes.values() if one.state is NodeState.CONFLICTED]
    if not failed and not conflicted:
        return PlanState.DONE, 0, None
    limits = [one for one in failed if _is_out_of_money(one)]
    set_up = [one for one in failed if _is_set_up_wrongly(one)]
    worst = (limits or set_up or failed or conflicted)[0]
    told = dict(worst.error or {})
    kept = sum(one.state is NodeState.DONE for one in nodes.values())
    ending = "needs a person" if told.get("action") == Action.ASK and not limits else "failed"
    error = {
        "code": told.get("code", ""),
        "message": f"Plan `{plan_id}` stopped: node `{worst.id}` {ending}: {told.get('message')}",
        "facts": {"node": worst.id, "reason": told.get("reason"), "kept": f"{kept} nodes"},
        "hint": told.get("hint") or f"Repair the cause, then resume plan `{plan_id}`",
    }
    exit_code = 1 if failed else 5
    if limits or set_up:
        exit_code = LimitError.exit_code if limits else SetupError.exit_code
    return PlanState.FAILED, exit_code, error


def stops_all(record: NodeRecord) -> bool:
    """Say whether a node failed by what no attempt at any node can mend."""
    return _is_out_of_money(record) or _is_set_up_wrongly(record)


def _is_out_of_money(record: NodeRecord) -> bool:
    return (record.error or {}).get("category") == ErrorCategory.BUDGET


def _is_set_up_wrongly(record: NodeRecord) -> bool:
    return (record.error or {}).get("code") == NOT_CONFINED


def past_deadline(plan_id: str, deadline_s: float) -> LimitError:
    """Return the error of a plan that took too long."""
    return LimitError(
        f"Plan `{plan_id}` reached its deadline of {deadline_s:g} s",
        code="CA2201",
        facts={"plan": plan_id, "deadline_s": deadline_s},
        hint="Resume it to go on with what is left, or raise `deadline_s`",
    )
