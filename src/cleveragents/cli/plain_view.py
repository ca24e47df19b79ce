"""A run without a terminal: one line for each fact on stderr, or one record for each on stdout."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Protocol

from cleveragents.cli import output
from cleveragents.cli.run_lines import name_width, node_line
from cleveragents.cli.table import one_line
from cleveragents.domain.money import Money
from cleveragents.domain.run_events import (
    AttemptFailed,
    LogLine,
    NodeFinished,
    NodeStarted,
    PlanEnded,
    PlanStarted,
    SpendChanged,
)

if TYPE_CHECKING:
    from cleveragents.cli.view_model import RunModel
    from cleveragents.domain.event import Notice
    from cleveragents.domain.run_events import RunEvent

KINDS: Final[dict[type, str]] = {
    PlanStarted: "plan.started",
    NodeStarted: "node.started",
    AttemptFailed: "attempt.failed",
    NodeFinished: "node.finished",
    SpendChanged: "spend.changed",
    LogLine: "log.line",
    PlanEnded: "plan.ended",
}


class View(Protocol):
    """Shows a run while it goes on; used by one thread."""

    def take(self, event: RunEvent, at: float, files: int | None) -> None:
        """Show an event."""
        ...

    def tick(self, now: float) -> None:
        """Show that time goes on."""
        ...

    def say(self, text: str) -> None:
        """Show a word to the user, apart from the run itself."""
        ...

    def warn(self, notice: Notice) -> None:
        """Show a warning."""
        ...

    def close(self, now: float) -> None:
        """Show the last state, and leave the terminal to others."""
        ...


class PlainView:
    """One line for each node that ended or is tried again; it never takes a line back."""

    def __init__(self, model: RunModel) -> None:
        self._model = model
        self._width = name_width(model)

    def take(self, event: RunEvent, at: float, files: int | None) -> None:
        """Print the line of a node when it has news."""
        one = self._model.take(event, at, files)
        if one is None:
            return
        tried_again = isinstance(event, AttemptFailed) and one.again_at is not None
        if tried_again or isinstance(event, NodeFinished):
            output.talk(node_line(self._model, one, at, self._width).text)

    def tick(self, now: float) -> None:
        """Print nothing: a log has no use for passing time."""

    def say(self, text: str) -> None:
        """Print a word."""
        output.talk(text)

    def warn(self, notice: Notice) -> None:
        """Print a warning."""
        output.talk(warning(notice))

    def close(self, now: float) -> None:
        """Print nothing more."""


class JsonView:
    """One record for each event on stdout, as soon as it happens."""

    def __init__(self, model: RunModel) -> None:
        self._model = model

    def take(self, event: RunEvent, at: float, files: int | None) -> None:
        """Print an event as a record."""
        self._model.take(event, at, files)
        told = event_record(event)
        _record({**told, "files": files} if files is not None else told)

    def tick(self, now: float) -> None:
        """Print nothing."""

    def say(self, text: str) -> None:
        """Print nothing: whoever reads records knows what it did."""

    def warn(self, notice: Notice) -> None:
        """Print a warning as a record."""
        _record(
            {
                "kind": "warning",
                "code": notice.code,
                "message": notice.message,
                "facts": {name: _shown(value) for name, value in notice.facts.items()},
            }
        )

    def close(self, now: float) -> None:
        """Print nothing more."""


def event_record(event: RunEvent) -> dict[str, Any]:
    """Return an event as `--json` shows it."""
    told: dict[str, Any] = {"kind": KINDS[type(event)], "plan": event.plan_id}
    for one in fields(event):
        value = getattr(event, one.name)
        if isinstance(value, Money):
            told[f"{one.name}_usd"] = f"{value.usd:f}"
        elif one.name != "plan_id":
            told[one.name] = value
    return told


def warning(notice: Notice) -> str:
    """Return a warning as people read it."""
    facts = {name: one_line(_shown(value)) for name, value in notice.facts.items()}
    head = f"warning[{notice.code}]: {one_line(notice.message)}"
    return f"{head}\n{output.facts(facts)}" if facts else head


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _record(told: dict[str, Any]) -> None:
    output.record(told)
    output.flush()
