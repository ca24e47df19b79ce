"""What is kept about each call of a tool."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRecord:
    """One call: who called what, how long it took, and what came of it; without secrets."""

    call_id: str
    plan_id: str
    node: str
    attempt: int
    actor: str | None
    tool: str
    #: As JSON, each value cut.
    arguments: str
    #: When it began, in seconds since the epoch.
    at: float
    duration_s: float
    result_chars: int | None = None
    error_code: str | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON and the store."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


class ToolJournal(Protocol):
    """Keeps the calls of tools; safe to call from any thread."""

    def record(self, call: ToolRecord, /) -> None:
        """Keep a call; it is kept when this returns."""
        ...


class MemoryToolJournal:
    """Keeps calls in memory; any number of threads may share it.

    No call is lost, and those that one thread records stand in the order in which it did.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards: _calls
        self._calls: list[ToolRecord] = []

    def record(self, call: ToolRecord, /) -> None:
        """Keep a call."""
        with self._lock:
            self._calls.append(call)

    def calls(self, plan_id: str | None = None) -> tuple[ToolRecord, ...]:
        """Return the calls so far, of all plans or of one."""
        with self._lock:
            calls = tuple(self._calls)
        return tuple(call for call in calls if plan_id in {None, call.plan_id})
