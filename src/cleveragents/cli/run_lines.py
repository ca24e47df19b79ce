"""The lines of a run as people read them, each made from the model alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.cli.output import one_line
from cleveragents.cli.view_model import run_length_s
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.wording import counted

if TYPE_CHECKING:
    from cleveragents.cli.view_model import NodeView, RunModel
    from cleveragents.domain.money import Money

NAME_CHARS_MAX: Final = 32
#: What stands before a node, and how it is coloured where there are colours.
_MARKS: Final = {
    NodeState.WAITING: ("·", "dim"),
    NodeState.RUNNING: ("▸", "busy"),
    NodeState.MERGING: ("▸", "busy"),
    NodeState.DONE: ("✓", "good"),
    NodeState.SKIPPED: ("-", "dim"),
    NodeState.FAILED: ("✗", "bad"),
    NodeState.CONFLICTED: ("!", "bad"),
    NodeState.CANCELLED: ("■", "bad"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text; its mark is the first character that is no space."""

    text: str
    tone: str = ""


def header(model: RunModel) -> str:
    """Return what is about to run."""
    at_once = f"at most {model.plan.at_once} at once"
    budget = "" if model.budget is None else f", budget {model.budget}"
    kept = model.counts()[NodeState.DONE]
    done = f", {kept} done before" if kept else ""
    return (
        f"plan {model.plan_id}  {counted(len(model.plan.nodes), 'node')}, {at_once}{budget}{done}"
    )


def node_line(model: RunModel, one: NodeView, now: float, width: int = 0) -> Line:
    """Return where a node stands; names are padded to a width."""
    mark, tone = _MARKS[one.state]
    if one.again_at is not None:
        mark, tone = "↻", "again"
    elapsed_s = one.elapsed_s(now)
    cells = [
        f"  {mark} {one_line(one.id):<{width}}",
        f"{'' if elapsed_s is None else duration(elapsed_s):>8}",
        f"{money(one.spent) if one.spent else ''}",
        note_of(model, one, now),
    ]
    # An empty cell of money is not kept: most plans of commands have none at all.
    shown = [cell for at, cell in enumerate(cells) if cell or at < 2]
    return Line("   ".join(shown).rstrip(), tone)


def note_of(model: RunModel, one: NodeView, now: float) -> str:
    """Return what else a person wants to know of a node."""
    match one.state:
        case NodeState.DONE:
            note = counted(one.files, "file") if one.files else ""
        case NodeState.RUNNING:
            again = f"{_attempt(model, one)}" if one.attempt > 1 else ""
            note = ": ".join(filter(None, (again, one.said)))
        case NodeState.WAITING if one.again_at is not None:
            wait_s = one.again_at - now
            when = f", again in {duration(wait_s)}" if wait_s >= 0.05 else ""
            note = f"{_attempt(model, one)} failed{when}: {one.fault}"
        case NodeState.WAITING:
            note = model.waits_for(one)
        case NodeState.SKIPPED:
            note = f"skipped: {one.fault}" if one.fault else "skipped"
        case _:
            note = one.fault or str(one.state)
    return note


def _attempt(model: RunModel, one: NodeView) -> str:
    """Return `attempt 2 of 3`; after a resume there are more than the plan allows to one run."""
    most = model.attempts_max.get(one.node, 1)
    return f"attempt {one.attempt} of {most}" if one.attempt <= most else f"attempt {one.attempt}"


def status(model: RunModel, now: float) -> Line:
    """Return where the whole run stands."""
    counts = model.counts()
    running = counts[NodeState.RUNNING] + counts[NodeState.MERGING]
    parts = [
        f"{running:,} running" if running else "",
        *(f"{counts[state]:,} {state}" for state in NodeState if state in _TOLD and counts[state]),
    ]
    cells = [
        f"{counts[NodeState.DONE]:,} of {counted(counts.total(), 'node')} done",
        ", ".join(filter(None, parts)),
        spending(model),
        duration(run_length_s(model, now)),
    ]
    return Line("  " + "   ".join(filter(None, cells)))


_TOLD: Final = frozenset(set(NodeState) - {NodeState.DONE, NodeState.RUNNING, NodeState.MERGING})


def ending(model: RunModel, files: int) -> str:
    """Return how the run ended, and what it made."""
    counts = model.counts()
    word = {"done": "done in"}.get(model.end or "", f"{model.end} after")
    skipped = counts[NodeState.SKIPPED]
    parts = [
        f"{counts[NodeState.DONE]:,} of {counted(counts.total(), 'node')}",
        f"{skipped} skipped" if skipped else "",
        counted(files, "file") if files else "",
        spending(model),
    ]
    told = ", ".join(filter(None, parts))
    return f"{word} {duration(run_length_s(model, model.ended or 0.0))}: {told}"


def spending(model: RunModel) -> str:
    """Return what is spent, of how much if there is a budget; nothing where there is no money."""
    if model.budget is not None:
        return f"{model.spent.usd:f} of {model.budget}"
    return str(model.spent) if model.spent else ""


def name_width(model: RunModel) -> int:
    """Return how wide the column of names is."""
    longest = max((len(one.name) for one in model.plan.nodes), default=0)
    fan_outs = any(one.for_each is not None for one in model.plan.nodes)
    return min(NAME_CHARS_MAX, longest + 4 * fan_outs)


def money(amount: Money) -> str:
    """Return an amount, with digits below a cent only where there are some."""
    return f"{amount.usd:f} USD"


def duration(seconds: float) -> str:
    """Return `0.3 s`, `38 s`, `3 min 12 s`, `2 h 05 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
