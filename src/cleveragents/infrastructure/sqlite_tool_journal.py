"""The calls of tools in the durable store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    from cleveragents.infrastructure.store import Store


class CalledTool(Protocol):
    """What is known of a call; its texts are cut and without secrets."""

    @property
    def plan_id(self) -> str:
        """The plan of the attempt that called."""
        ...

    @property
    def actor(self) -> str | None:
        """The kind of actor that called."""
        ...

    @property
    def at(self) -> float:
        """When it began."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        ...


class SqliteToolJournal:
    """Keeps each call as an event of the audit trail; any threads and processes may share it.

    A call is on the disk when `record` returns.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def record(self, call: CalledTool, /) -> None:
        """Keep a call."""
        values = call.to_dict()
        body = {name: plain(one) if isinstance(one, str) else one for name, one in values.items()}
        self._store.write(
            lambda tx: tx.event(
                "tool.called", body, at=call.at, plan=call.plan_id, actor=call.actor
            )
        )
