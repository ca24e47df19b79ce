"""`cleveragents errors`: what failed, how often, and what was decided about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cleveragents.cli import output, state
from cleveragents.cli.table import table
from cleveragents.domain.budget import zone_of
from cleveragents.domain.wording import counted
from cleveragents.infrastructure.audit import Filter, events
from cleveragents.settings import load

if TYPE_CHECKING:
    import sqlite3
    from argparse import Namespace
    from collections.abc import Iterable
    from datetime import tzinfo

_MESSAGE_CHARS_MAX: Final = 60


@dataclass(slots=True)
class Fault:
    """All errors of one kind in one node of one plan, and the last of them."""

    last: dict[str, Any] = field(default_factory=dict)
    times: int = 0
    decided: Counter[str] = field(default_factory=Counter)


def show_errors(options: Namespace) -> int:
    """Print every fault with its count and its decisions, the newest last."""
    with state.reading() as connection:
        faults = [] if connection is None else faults_of(connection, options.plan)
    if not faults:
        of_plan = "" if options.plan is None else f" of plan `{options.plan}`"
        return state.nothing(
            f"No errors{of_plan}", "Run `cleveragents audit show` to see what else happened"
        )
    if options.json:
        for fault in faults:
            output.record(_as_record(fault))
        return 0
    output.data(_as_table(faults, zone_of(load()[0].zone)))
    counts: Counter[str] = Counter()
    for fault in faults:
        counts[fault.last["category"]] += fault.times
    output.data(f"\n{counted(counts.total(), 'error')}: {_listed(counts.most_common())}")
    return 0


def faults_of(connection: sqlite3.Connection, plan: str | None) -> list[Fault]:
    """Group the recorded errors by plan, node, category and fingerprint, by their last one."""
    faults: dict[tuple[Any, ...], Fault] = {}
    about: dict[tuple[str, int], Fault] = {}
    for event in events(connection, Filter(plan=plan, kind="error")):
        body = event["body"]
        if event["kind"] == "error.recorded":
            key = (body["plan_id"], body["node"], body["category"], body["fingerprint"])
            # Put in again at the end, so that the dictionary is in the order of the last ones.
            fault = faults[key] = faults.pop(key, Fault())
            fault.last = body
            fault.times += 1
            about[body["plan_id"], body["seq"]] = fault
        elif (decided := about.get((body["plan_id"], body["record_seq"]))) is not None:
            decided.decided[body["action"]] += 1
    return list(faults.values())


def _as_record(fault: Fault) -> dict[str, Any]:
    return {"kind": "fault", "times": fault.times, "decided": fault.decided, "last": fault.last}


def _as_table(faults: list[Fault], zone: tzinfo) -> str:
    rows = [
        (
            f"{datetime.fromtimestamp(one.last['at'], zone):%Y-%m-%d %H:%M:%S}",
            one.last["plan_id"],
            one.last["node"] or one.last["actor"] or "-",
            one.last["category"],
            str(one.times),
            _listed(one.decided.items()) or "nothing",
            _shortened(one.last["message"] or one.last["exception_type"]),
        )
        for one in faults
    ]
    head = (f"last ({zone})", "plan", "where", "category", "times", "decided", "message")
    return table(head, rows, right=("times",))


def _listed(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts)


def _shortened(text: str) -> str:
    return text if len(text) <= _MESSAGE_CHARS_MAX else f"{text[: _MESSAGE_CHARS_MAX - 1]}…"
