"""What happens while a plan runs, as small values for a live view.

All of it is in the audit trail too; what `SpendChanged` tells, the ledger has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from cleveragents.domain.error_record import Action
    from cleveragents.domain.money import Money
    from cleveragents.domain.plan_graph import NodeState

__all__ = [
    "AttemptFailed",
    "LogLine",
    "NodeFinished",
    "NodeStarted",
    "PlanEnded",
    "PlanStarted",
    "RunEvent",
    "SpendChanged",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStarted:
    """A run began; `kept` nodes were finished by an earlier one."""

    plan_id: str
    nodes: int
    kept: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted:
    """An attempt at a node, or at one instance of a fan-out, began."""

    plan_id: str
    node: str
    attempt: int
    actor: str
    #: How many instances its node has; 0 where that is not told.
    members: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed:
    """An attempt failed, and this was decided about it."""

    plan_id: str
    node: str
    attempt: int
    code: str
    message: str
    action: Action
    reason: str
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished:
    """A node came to its end: done, skipped, failed, conflicted or cancelled."""

    plan_id: str
    node: str
    state: NodeState
    attempt: int
    duration_s: float = 0.0
    changeset: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendChanged:
    """An attempt was charged so much more; less, where a bill came in place of its upper bound."""

    plan_id: str
    node: str
    attempt: int
    amount: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """An actor told something."""

    plan_id: str
    node: str
    attempt: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEnded:
    """The run is over; `state` is that of the plan."""

    plan_id: str
    state: str
    exit_code: int


RunEvent: TypeAlias = (
    PlanStarted | NodeStarted | AttemptFailed | NodeFinished | SpendChanged | LogLine | PlanEnded
)
