"""Asking others about a failure: a person how to go on, or a planner for another node."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cleveragents.application.run_journal import source_of
from cleveragents.application.services.attempt_order import Answer, Question
from cleveragents.domain.error_record import Action
from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan_graph import NodeState

if TYPE_CHECKING:
    from cleveragents.application.run_journal import NodeRecord, RunBook
    from cleveragents.application.services.attempt_order import Ask, Outcome, Replan
    from cleveragents.domain.plan import Node, Plan

_log = logging.getLogger(__name__)

_AGAIN = frozenset({Action.RETRY, Action.FEEDBACK})


@dataclass(frozen=True, slots=True)
class Consulted:
    """What became of a question: the node waits for another attempt, is skipped, or has failed."""

    outcome: Outcome
    record: NodeRecord
    #: What a planner put in the place of the node.
    node: Node | None = None


class Consultant:
    """Carries the decisions `ask` and `replan` out, where there is somebody to ask."""

    def __init__(self, ask: Ask | None, replan: Replan | None) -> None:
        self._ask = ask
        self._replan = replan

    @property
    def can_replan(self) -> bool:
        """Say whether there is a planner."""
        return self._replan is not None

    def knows(self, outcome: Outcome) -> bool:
        """Say whether a decision is one that somebody here can be asked about."""
        assert outcome.decision is not None, "a failure has a decision"
        action = outcome.decision.action
        if outcome.record.state is not NodeState.FAILED:
            return False
        return action is Action.REPLAN or (action is Action.ASK and self._ask is not None)

    def consult(self, outcome: Outcome) -> Consulted:
        """Ask, for as long as it takes; one who raises has nothing to say, and the node fails."""
        assert outcome.error is not None, "a failure has a record"
        assert outcome.decision is not None, "a failure has a decision"
        record = outcome.record
        question = Question(
            plan_id=outcome.order.plan_id,
            node=record.id,
            attempt=record.attempt,
            error=outcome.error,
            decision=outcome.decision,
        )
        try:
            if outcome.decision.action is Action.REPLAN:
                return self._replanned(outcome, question)
            answer = Answer() if self._ask is None else self._ask(question)
        except Exception:  # noqa: BLE001  # whatever a stranger does, the plan goes on
            _log.exception("Nobody could be asked about node `%s`", record.id)
            answer = Answer()
        return Consulted(outcome, _answered(record, answer))

    @staticmethod
    def revised(plan: Plan, node: Node, book: RunBook) -> Plan:
        """Put a node in the place of the one of its name; kept before anything goes on with it."""
        nodes = tuple(node if one.name == node.name else one for one in plan.nodes)
        fresh = replace(plan, nodes=nodes)
        book.revise(source_of(fresh))
        return fresh

    def _replanned(self, outcome: Outcome, question: Question) -> Consulted:
        assert self._replan is not None, "the decision said that there is a planner"
        node = self._replan(question)
        if node is None:
            return Consulted(outcome, outcome.record)
        old = outcome.order.node
        if (node.name, set(node.needs)) != (old.name, set(old.needs)):
            raise RequestError(
                f"A planner must return a node `{old.name}` with the same `needs`,"
                f" got `{node.name}`"
            )
        return Consulted(outcome, replace(outcome.record, state=NodeState.WAITING), node)


def _answered(record: NodeRecord, answer: Answer) -> NodeRecord:
    if answer.action is Action.SKIP:
        return replace(record, state=NodeState.SKIPPED)
    if answer.action not in _AGAIN:
        return record
    told = (answer.feedback,) if answer.feedback else ()
    return replace(record, state=NodeState.WAITING, feedback=(*record.feedback, *told))
