"""What is kept of a run: enough to go on after a crash at any moment, and by whom.

The one who runs a plan holds its `RunBook`; every write of a book that lost its plan to another
process is refused (CA6202), so two processes never write one plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from cleveragents.domain.plan import PLAN, Plan
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.plan_rules import Findings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class PlanState(StrEnum):
    """Where a plan stands."""

    DRAFT = "draft"
    READY = "ready"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DONE = "done"
    APPLIED = "applied"
    REVERTED = "reverted"

    @property
    def is_finished(self) -> bool:
        """Say whether all nodes are done."""
        return self in {self.DONE, self.APPLIED, self.REVERTED}

    def may_become(self, state: PlanState) -> bool:
        """Say whether a person may move a plan to this state without running it."""
        return state in {
            self.DRAFT: {self.READY, self.CANCELLED},
            self.READY: {self.DRAFT, self.CANCELLED},
            self.PAUSED: {self.CANCELLED},
            self.FAILED: {self.CANCELLED},
            self.DONE: {self.APPLIED},
            self.APPLIED: {self.REVERTED},
            self.REVERTED: {self.APPLIED},
        }.get(self, set())


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Somebody wants the run to end as `paused` or `cancelled`; a hard one stops attempts too."""

    state: PlanState
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The plan belongs to another process now, or the journal cannot be written."""

    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """All that is kept of a node, or of one instance of a fan-out; its latest truth."""

    id: str
    node: str
    state: NodeState = NodeState.WAITING
    #: The number of the latest attempt, over all runs; 0 when there was none.
    attempt: int = 0
    actor: str | None = None
    output: Any = None
    changeset: str | None = None
    #: Why attempts failed, the newest last.
    feedback: tuple[str, ...] = ()
    #: What the last failure said: code, message, facts and hint.
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """All that is kept of a plan but its nodes; `source` is the plan as JSON."""

    id: str
    source: str
    digest: str
    state: PlanState
    session: str | None = None
    error: Mapping[str, Any] | None = None
    created: float = 0.0
    #: Where its file lies: absolute, or seen from the tree; None when it came from no file.
    folder: str | None = None


class RunBook(Protocol):
    """The right to run one plan, and the only pen that writes about its nodes.

    Every method is safe to call from any thread, and refused with CA6202 once the plan is lost.
    What is put without waiting is kept before whatever is put, or asked of the store, later.
    """

    @property
    def plan(self) -> PlanRecord:
        """The plan as it was taken."""
        ...

    @property
    def nodes(self) -> tuple[NodeRecord, ...]:
        """What earlier runs left; what was running when they died waits again."""
        ...

    @property
    def interrupted(self) -> tuple[NodeRecord, ...]:
        """What was running when the last run died."""
        ...

    def put(self, *records: NodeRecord, wait: bool = True) -> None:
        """Keep the latest truth about nodes, of all or none; `wait` until it is durable."""
        ...

    def log(self, record: NodeRecord, text: str) -> None:
        """Keep a line that an attempt told."""
        ...

    def revise(self, source: str) -> None:
        """Keep the plan as a person or a planner changed it."""
        ...

    def end(self, state: PlanState, error: Mapping[str, Any] | None) -> None:
        """Give the plan back, with the state that it came to."""
        ...

    def close(self) -> None:
        """Stop listening; a plan that was not ended is as if its process had died just now."""
        ...


class RunJournal(Protocol):
    """Keeps plans and who runs them; safe for any number of threads and processes."""

    def add(
        self,
        plan_id: str,
        source: str,
        *,
        session: str | None,
        folder: str | None,
        state: PlanState,
    ) -> None:
        """Keep a new plan; the same plan again is fine, another of its name is refused."""
        ...

    def get(self, plan_id: str) -> PlanRecord:
        """Return a plan; CA4107 when there is none of this name."""
        ...

    def plans(self) -> tuple[PlanRecord, ...]:
        """Return all plans, the oldest first."""
        ...

    def nodes(self, plan_id: str) -> tuple[NodeRecord, ...]:
        """Return what is kept of the nodes of a plan."""
        ...

    def take(self, plan_id: str, on_news: Callable[[StopRequest | Lost], object]) -> RunBook:
        """Take the right to run a plan, also from the dead; CA6201 while another process has it.

        `on_news` hears, in another thread, what others wish of the run, and of its loss.
        """
        ...

    def ask_to_stop(self, plan_id: str, state: PlanState) -> None:
        """Wish that whoever runs the plan pauses or cancels it; the second wish is a hard one."""
        ...

    def move(self, plan_id: str, state: PlanState) -> None:
        """Move a plan that nobody runs to another state; CA6203 where the rules forbid it."""
        ...


def plan_of(source: str) -> Plan:
    """Read a plan from its JSON."""
    import json

    found = Findings()
    plan = PLAN.read(json.loads(source), (), found)
    found.raise_if_any("plan")
    assert isinstance(plan, Plan)
    return plan


def source_of(plan: Plan) -> str:
    """Write a plan as JSON; the same plan is always the same text."""
    import json

    return json.dumps(PLAN.plain(plan), separators=(",", ":"))
