"""Calls of tools as events of the durable store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from cleveragents.infrastructure.stored_text import check_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.infrastructure.store import Store


class RecordedCall(Protocol):
    """What the store needs of a record; the tool service makes them."""

    @property
    def plan_id(self) -> str:
        """The plan that the call belongs to."""
        ...

    @property
    def actor(self) -> str | None:
        """The kind of actor that called."""
        ...

    @property
    def at(self) -> float:
        """When it began, in seconds since the epoch."""
        ...

    def to_dict(self) -> Mapping[str, Any]:
        """Return plain values."""
        ...


class StoredToolJournal:
    """Keeps each call as a `tool.called` event of the audit trail, durable when `record` returns.

    Safe for any number of threads and processes on one store; callers that wait at the same time
    share one commit.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def record(self, call: RecordedCall, /) -> None:
        """Keep a call."""
        check_names(plan_id=call.plan_id, actor=call.actor)
        body = call.to_dict()
        self._store.write(
            lambda tx: tx.event(
                "tool.called", body, at=call.at, plan=call.plan_id, actor=call.actor
            )
        )
