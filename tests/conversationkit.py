"""Conversations in memory: what tests of model actors and of the contract use."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from cleveragents.application.conversations import Conversation, not_the_next

if TYPE_CHECKING:
    from cleveragents.application.attempts import Held
    from cleveragents.application.conversations import Turn


class InMemoryConversations:
    """A `Conversations` whose every method is one atomic step under one lock.

    Safe to share between any number of threads, with or without an interpreter lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards: _open, _count
        self._open: dict[tuple[str, str], Conversation] = {}
        self._count = 0

    def open(self, plan_id: str, node: str, digest: str) -> Conversation:
        """Return the open conversation of a node, or begin one."""
        key = (plan_id, node)
        with self._lock:
            known = self._open.get(key)
            if known is None or known.digest != digest:
                self._count += 1
                known = self._open[key] = Conversation(
                    id=str(self._count), plan_id=plan_id, node=node, digest=digest
                )
            return known

    def keep(self, conversation_id: str, turn: Turn, held: Held | None = None) -> None:
        """Keep the next turn; CA6205 when it is not the next, or the conversation is over."""
        with self._lock:
            known = self._found_locked(conversation_id)
            is_next = known is not None and turn.number == len(known.turns) + 1
            if known is not None and is_next:
                grown = replace(known, turns=(*known.turns, turn))
                self._open[known.plan_id, known.node] = grown
        if not is_next:
            raise not_the_next(conversation_id, turn)
        if held is not None:
            held.settle(turn.cost)

    def give_up(self, conversation_id: str) -> None:
        """End a conversation that nobody can go on with; ended already is fine."""
        with self._lock:
            known = self._found_locked(conversation_id)
            if known is not None:
                del self._open[known.plan_id, known.node]

    def _found_locked(self, conversation_id: str) -> Conversation | None:
        return next((one for one in self._open.values() if one.id == conversation_id), None)
