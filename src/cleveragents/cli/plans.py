"""`cleveragents list|status|cancel|pause`: where plans stand, and what is asked of their runs."""

from __future__ import annotations

import shlex
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.run_journal import PlanState
from cleveragents.cli import output, state
from cleveragents.cli.stored_plans import STOPPED, Counts, reading_plan, reading_plans
from cleveragents.cli.table import one_line, table
from cleveragents.domain.budget import zone_of
from cleveragents.domain.wording import counted
from cleveragents.infrastructure.plan_journal import SqliteRunJournal
from cleveragents.settings import load

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from cleveragents.application.run_journal import NodeRecord, PlanRecord
    from cleveragents.cli.stored_plans import StoredPlans
    from cleveragents.domain.budget import Balance
    from cleveragents.infrastructure.store import Store

_GOAL_CHARS_MAX: Final = 40
_FIRST: Final = "Run `cleveragents init`, then `cleveragents run plan.yaml`"
#: What a plan can be asked to do next, by its state.
_NEXT: Final = {
    "ready": "resume",
    "running": "watch",
    STOPPED: "resume",
    "paused": "resume",
    "failed": "resume",
    "cancelled": "resume",
    "done": "diff",
}


def list_plans(options: Namespace) -> int:
    """Print all plans, the newest last."""
    with reading_plans() as plans:
        found = [] if plans is None else [_summary(plans, one) for one in plans.all()]
    if not found:
        return state.nothing("No plans yet", _FIRST)
    if options.json:
        for one in found:
            output.record(one)
        return 0
    zone = zone_of(load()[0].zone)
    rows = [
        (
            one["plan"],
            one["state"],
            _counts(one),
            f"{one['spent_usd']} USD",
            f"{datetime.fromtimestamp(one['created'], zone):%Y-%m-%d %H:%M}",
            _shortened(one["goal"]),
        )
        for one in found
    ]
    head = ("plan", "state", "nodes done", "spent", f"created ({zone})", "goal")
    output.data(table(head, rows, right=("nodes done", "spent")))
    return 0


def show_status(options: Namespace) -> int:
    """Print where one plan stands, node by node; all plans when none is named."""
    if options.plan is None:
        return list_plans(options)
    with reading_plan(options.plan) as plans:
        record = plans.get(options.plan)
        summary, nodes = _summary(plans, record), plans.nodes(record.id)
        balance, rows = plans.balance(record.id), _rows(plans, record, nodes)
        told = [_node_record(plans, record, one) for one in nodes]
    if options.json:
        for one in ({**summary, "error": record.error}, *told):
            output.record(one)
        return 0
    output.data(_head(summary, balance))
    output.data(
        f"\n{table(('node', 'state', 'attempts', 'cost', 'why'), rows, right=('attempts', 'cost'))}"
    )
    word = _NEXT.get(summary["state"])
    if word is not None:
        # Where both go to one place, the hint comes last.
        output.flush()
        output.talk(f"\nhint: Run `cleveragents {word} {record.id}`")
    return 0


def cancel(options: Namespace) -> int:
    """Cancel a plan, whichever process runs it; with `--now` its attempts are stopped too.

    Of one that nobody runs, what a dead process left is settled at once.
    """
    with reading_plan(options.plan) as plans:
        is_run = plans.is_run(options.plan)
    with state.writing() as store:
        if is_run:
            _ask_to_stop(SqliteRunJournal(store), options, PlanState.CANCELLED)
            return _told(options, PlanState.CANCELLED, _wish("cancel", options))
        _cancel_at_once(options.plan, store)
    return _told(options, PlanState.CANCELLED, f"Cancelled plan `{options.plan}`")


def _cancel_at_once(plan_id: str, store: Store) -> None:
    # Here, because no other command of this module needs the tree.
    from cleveragents.runs import Runs
    from cleveragents.workspace import Workspace, WorkspaceOptions

    chosen = WorkspaceOptions(sandbox_kind=load()[0].sandbox_kind)
    with Workspace(state.root(), store, chosen) as workspace, Runs(workspace) as runs:
        runs.cancel(plan_id)


def pause(options: Namespace) -> int:
    """Let a running plan finish what runs, and stop; `resume` goes on."""
    with reading_plan(options.plan), state.writing() as store:
        _ask_to_stop(SqliteRunJournal(store), options, PlanState.PAUSED)
    return _told(options, PlanState.PAUSED, _wish("pause", options))


def _ask_to_stop(journal: SqliteRunJournal, options: Namespace, wanted: PlanState) -> None:
    # The second wish is a hard one.
    for _ in range(2 if options.now else 1):
        journal.ask_to_stop(options.plan, wanted)


def _wish(word: str, options: Namespace) -> str:
    how = "its attempts are stopped now" if options.now else "what runs is finished first"
    return f"Asked plan `{options.plan}` to {word}; {how}"


def _told(options: Namespace, wanted: PlanState, says: str) -> int:
    if options.json:
        output.record({"kind": "stop", "plan": options.plan, "state": wanted, "now": options.now})
        return 0
    output.talk(says)
    output.talk(f"\nhint: Run `cleveragents resume {shlex.quote(options.plan)}` to go on with it")
    return 0


def _summary(plans: StoredPlans, record: PlanRecord) -> dict[str, Any]:
    import json

    counts = plans.counts(record)
    balance = plans.balance(record.id)
    return {
        "kind": "plan",
        "plan": record.id,
        "state": plans.state_of(record),
        "goal": json.loads(record.source)["goal"],
        "done": counts.done,
        "nodes": counts.total,
        "nodes_known": counts.is_exact,
        "spent_usd": f"{balance.spent.usd:f}",
        "limit_usd": None if balance.limit is None else f"{balance.limit.usd:f}",
        "created": record.created,
    }


def _counts(summary: dict[str, Any]) -> str:
    return str(Counts(summary["done"], summary["nodes"], summary["nodes_known"]))


def _head(summary: dict[str, Any], balance: Balance) -> str:
    limit = "" if balance.limit is None else f" of {balance.limit}"
    return output.facts(
        {
            "plan": summary["plan"],
            "goal": one_line(summary["goal"]),
            "state": summary["state"],
            "nodes": f"{_counts(summary)} done",
            "spent": f"{balance.spent}{limit}",
        }
    )


def _rows(
    plans: StoredPlans, record: PlanRecord, nodes: Iterable[NodeRecord]
) -> list[tuple[str, ...]]:
    """Return a row for each node; of a fan-out one for all, and one for each that is not done."""
    model = plans.model(record.id, with_past=True)
    by_node: dict[str, list[NodeRecord]] = {one.name: [] for one in model.plan.nodes}
    for one in nodes:
        by_node.setdefault(one.node, []).append(one)
    rows: list[tuple[str, ...]] = []
    for name, known in by_node.items():
        spent = plans.spent_by(record.id, name)
        cost = str(spent) if spent else "-"
        if not known:
            rows.append((name, "waiting", "0", cost, model.waits_for(model.nodes[name])))
        elif len(known) == 1 and known[0].id == name:
            rows.append(_row(known[0], cost))
        else:
            counts = Counter(str(one.state) for one in known)
            states = ", ".join(f"{count} {word}" for word, count in counts.items())
            attempts = sum(one.attempt for one in known)
            rows.append((name, states, str(attempts), cost, counted(len(known), "item")))
            rows += [_row(one, "") for one in known if str(one.state) != "done"]
    return rows


def _row(one: NodeRecord, cost: str) -> tuple[str, ...]:
    why = "" if str(one.state) == "done" else str((one.error or {}).get("message", ""))
    return one.id, str(one.state), str(one.attempt), cost, _shortened(why, 80)


def _node_record(plans: StoredPlans, record: PlanRecord, one: NodeRecord) -> dict[str, Any]:
    # The books know the cost of a node; that of one member of a fan-out is not told apart.
    spent = plans.spent_by(record.id, one.node) if one.id == one.node else None
    return {
        "kind": "node",
        "node": one.id,
        "state": one.state,
        "attempt": one.attempt,
        "actor": one.actor,
        "changeset": one.changeset,
        "spent_usd": None if spent is None else f"{spent.usd:f}",
        "output": one.output,
        "error": one.error,
    }


def _shortened(text: str, chars_max: int = _GOAL_CHARS_MAX) -> str:
    line = one_line(text)
    return line if len(line) <= chars_max else f"{line[: chars_max - 1]}…"
