"""Tells a listener what happens in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cleveragents.domain.event import tell
from cleveragents.domain.run_events import (
    AttemptFailed,
    NodeFinished,
    NodeStarted,
    PlanEnded,
    PlanStarted,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.application.run_journal import NodeRecord, PlanState
    from cleveragents.application.services.attempt_order import Outcome
    from cleveragents.domain.run_events import RunEvent


class Narrator:
    """Makes events of what the coordinating thread does, if anybody listens."""

    def __init__(self, plan_id: str, listener: Callable[[RunEvent], object] | None) -> None:
        self._plan_id = plan_id
        self._listener = listener

    def tell(self, event: RunEvent) -> None:
        """Pass an event on."""
        tell(self._listener, event)

    def plan_started(self, nodes: int, kept: int) -> None:
        """Say that the run begins."""
        self.tell(PlanStarted(plan_id=self._plan_id, nodes=nodes, kept=kept))

    def plan_ended(self, state: PlanState, exit_code: int) -> None:
        """Say that the run is over."""
        self.tell(PlanEnded(plan_id=self._plan_id, state=state, exit_code=exit_code))

    def started(self, record: NodeRecord, members: int) -> None:
        """Say that an attempt begins."""
        if self._listener is not None:
            self.tell(
                NodeStarted(
                    plan_id=self._plan_id,
                    node=record.id,
                    attempt=record.attempt,
                    actor=record.actor or "",
                    members=members,
                )
            )

    def failed(self, outcome: Outcome) -> None:
        """Say that an attempt failed, and what was decided."""
        record, error, decision = outcome.record, outcome.error, outcome.decision
        assert error is not None, "a failure has a record"
        assert decision is not None, "a failure has a decision"
        self.tell(
            AttemptFailed(
                plan_id=self._plan_id,
                node=record.id,
                attempt=record.attempt,
                code=str((record.error or {}).get("code", "")),
                message=error.message,
                action=decision.action,
                reason=decision.reason,
                delay_s=decision.delay_s,
            )
        )

    def finished(self, record: NodeRecord, duration_s: float) -> None:
        """Say that a node came to its end."""
        if self._listener is not None:
            self.tell(
                NodeFinished(
                    plan_id=self._plan_id,
                    node=record.id,
                    state=record.state,
                    attempt=record.attempt,
                    duration_s=duration_s,
                    changeset=record.changeset,
                )
            )
