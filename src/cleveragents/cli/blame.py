"""`cleveragents blame`: who wrote each line of a file, why, and what it cost."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleveragents.cli import output, state
from cleveragents.cli.changes import opened
from cleveragents.cli.table import one_line, table
from cleveragents.domain.budget import zone_of
from cleveragents.infrastructure.changes.blame import Blame
from cleveragents.infrastructure.stored_text import plain
from cleveragents.settings import load

if TYPE_CHECKING:
    from argparse import Namespace
    from datetime import tzinfo

    from cleveragents.infrastructure.changes.blame import Line, Origin

_HEAD: Final = ("line", "plan", "by", "changeset", "applied", "text")


def blame(options: Namespace) -> int:
    """Print the lines of a file with their origin, or all that is known of one line."""
    file, number = _asked(options.file)
    with opened() as changes:
        if changes is None:
            return state.nothing("No plan has written anything yet", "Run a plan, then look again")
        lines = Blame(changes.store, changes.repository).lines(file, number)
    zone = zone_of(load()[0].zone)
    if options.json:
        for line in lines:
            output.record(_record(line))
    elif number is not None:
        (line,) = lines
        output.data(_as_facts(line, zone))
    elif lines:
        output.data(table(_HEAD, [_row(line, zone) for line in lines], right=("line",)))
    return 0


def _asked(text: str) -> tuple[Path, int | None]:
    """Take `FILE:LINE` apart, unless there is a file of just this name."""
    name, colon, number = text.rpartition(":")
    if colon and name and number.isdecimal() and not Path(text).exists():
        return Path(name), int(number)
    return Path(text), None


def _row(line: Line, zone: tzinfo) -> tuple[str, ...]:
    number, text, origin = str(line.number), _text(line), line.origin
    if origin is None:
        return number, "-", "you", "-", "-", text
    by = _who(origin)
    return number, origin.plan_id, by, origin.changeset_id, _when(origin, zone), text


def _as_facts(line: Line, zone: tzinfo) -> str:
    head = one_line(f"{line.number}  {_text(line)}")
    if line.origin is None:
        return f"{head}\n{output.facts({'by': 'you'})}"
    origin = line.origin
    told = {name: _told(value) for name, value in origin.told.items()}
    facts = {
        "by": _who(origin),
        "plan": origin.plan_id,
        "node": origin.node or "-",
        "attempt": "-" if origin.attempt is None else origin.attempt,
        "changeset": origin.changeset_id,
        "applied": f"{_when(origin, zone)} by {origin.apply_id}",
        "cost": "unknown" if origin.cost is None else f"{origin.cost}, all attempts at the node",
        **told,
    }
    return f"{head}\n{output.facts(facts)}"


def _record(line: Line) -> dict[str, Any]:
    record: dict[str, Any] = {"kind": "line", "line": line.number, "text": _text(line)}
    origin = line.origin
    if origin is None:
        return {**record, "by": "you"}
    return {
        **record,
        "by": "plan",
        "plan": origin.plan_id,
        "node": origin.node,
        "actor": origin.actor,
        "attempt": origin.attempt,
        "changeset": origin.changeset_id,
        "apply": origin.apply_id,
        "applied_at": origin.applied_at,
        "cost_usd": None if origin.cost is None else f"{origin.cost.usd:f}",
        "told": origin.told,
    }


def _text(line: Line) -> str:
    return plain(line.text.decode("utf-8", "surrogateescape"))


def _who(origin: Origin) -> str:
    return origin.actor or origin.node or "an actor without a name"


def _when(origin: Origin, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(origin.applied_at, zone):%Y-%m-%d %H:%M}"


def _told(value: Any) -> str:
    return one_line(shlex.join(value) if isinstance(value, list) else str(value))
