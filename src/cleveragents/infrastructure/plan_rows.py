"""Plans and their nodes as rows of the durable store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.run_journal import NodeRecord, PlanRecord, PlanState
from cleveragents.domain.errors import PlanError
from cleveragents.domain.plan_graph import NodeState
from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    import sqlite3

    from cleveragents.infrastructure.transaction import Transaction

PLANS: Final = "SELECT id, source, digest, state, session, error, created, folder FROM plans"
#: Rows come as one text of JSON: a statement for each would let other threads in each time.
PUT_NODES: Final = """
REPLACE INTO plan_nodes
SELECT ?1,
    json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]'),
    json_extract(value, '$[6]'), json_extract(value, '$[7]'), json_extract(value, '$[8]')
FROM json_each(?2)
"""
_NODES: Final = (
    "SELECT id, node, state, attempt, actor, output, changeset, feedback, error FROM plan_nodes"
    " WHERE plan = ?"
)


def plan_row(source: Transaction | sqlite3.Connection, plan_id: str) -> PlanRecord:
    """Return a plan; CA4107 when there is none of this name."""
    row = source.execute(f"{PLANS} WHERE id = ?", (plain(plan_id),)).fetchone()
    if row is None:
        raise PlanError(
            f"Plan {plan_id!r} is not known",
            code="CA4107",
            facts={"plan": plan_id},
            hint="Run `cleveragents list` to see which there are",
        )
    return plan_record(row)


def plan_record(row: tuple[Any, ...]) -> PlanRecord:
    """Build a plan from its row."""
    plan_id, source, digest, state, session, error, created, folder = row
    return PlanRecord(
        id=plan_id,
        source=source,
        digest=digest,
        state=PlanState(state),
        session=session,
        error=None if error is None else json.loads(error),
        created=created,
        folder=None if folder is None else json.loads(folder),
    )


def node_rows(source: Transaction | sqlite3.Connection, plan_id: str) -> tuple[NodeRecord, ...]:
    """Return what is kept of the nodes of a plan."""
    return tuple(
        NodeRecord(
            id=node_id,
            node=node,
            state=NodeState(state),
            attempt=attempt,
            actor=actor,
            output=json.loads(output),
            changeset=changeset,
            feedback=tuple(json.loads(feedback)),
            error=None if error is None else json.loads(error),
        )
        for node_id, node, state, attempt, actor, output, changeset, feedback, error in (
            source.execute(_NODES, (plain(plan_id),))
        )
    )


def values_of(record: NodeRecord) -> tuple[Any, ...]:
    """Return a node as `PUT_NODES` takes it."""
    return (
        plain(record.id),
        record.node,
        record.state,
        record.attempt,
        record.actor,
        json.dumps(record.output),
        record.changeset,
        json.dumps(record.feedback),
        None if record.error is None else json.dumps(record.error),
    )


def node_events(
    records: tuple[NodeRecord, ...],
) -> list[tuple[str, list[dict[str, Any]], str | None]]:
    """Return what the audit trail says: what happens together, and alike, is one fact."""
    alike: dict[str, list[NodeRecord]] = {}
    for one in records:
        kind = "started" if one.state is NodeState.RUNNING else str(one.state)
        alike.setdefault(kind, []).append(one)
    return [
        (f"node.{kind}", [told_of(one) for one in some], some[0].actor if len(some) == 1 else None)
        for kind, some in alike.items()
    ]


def told_of(record: NodeRecord) -> dict[str, Any]:
    """Return what the audit trail says of a step: not the output, which may be large."""
    told: dict[str, Any] = {
        "node": plain(record.id),
        "attempt": record.attempt,
        "actor": record.actor,
    }
    if record.changeset is not None:
        told["changeset"] = record.changeset
    if record.error is not None:
        told["error"] = record.error
    return told
