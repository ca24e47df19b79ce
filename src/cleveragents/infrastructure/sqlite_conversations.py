"""The conversations with models in the durable store."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.conversations import Conversation, Turn, not_the_next
from cleveragents.domain.money import Money
from cleveragents.domain.usage import USAGE_FIELDS, Usage
from cleveragents.infrastructure.stored_text import check_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.infrastructure.store import Store, Transaction

_OPEN: Final = "SELECT id, digest FROM conversations WHERE plan = ? AND node = ? AND state = 'open'"
_TURNS: Final = (
    "SELECT number, attempt, model, request, response, usage, cost, reservation, dropped "
    "FROM turns WHERE conversation = ? ORDER BY number"
)
# The count is the fence: only the next number is taken, and only while it is open.
_IS_NEXT: Final = (
    "SELECT plan, node FROM conversations c WHERE id = ? AND state = 'open' "
    "AND ? = 1 + (SELECT count(*) FROM turns WHERE conversation = c.id)"
)
_GIVE_UP: Final = "UPDATE conversations SET state = 'given up' WHERE id = ?"


class SqliteConversations:
    """A `Conversations` whose every method is one transaction of the durable store.

    Safe for any number of threads and processes on one file. A turn is on the disk when `keep`
    returns, together with an event of the audit trail that tells its model, usage and cost.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    def open(self, plan_id: str, node: str, digest: str) -> Conversation:
        """Return the open conversation of a node, or begin one."""
        check_names(plan_id=plan_id, node=node)
        at = self._clock()

        def write(tx: Transaction) -> Conversation:
            found = tx.execute(_OPEN, (plan_id, node)).fetchone()
            number, about = found or (None, None)
            if number is not None and about != digest:
                tx.execute(_GIVE_UP, (number,))
            if number is None or about != digest:
                number = tx.execute(
                    "INSERT INTO conversations (plan, node, digest, state, began) "
                    "VALUES (?, ?, ?, 'open', ?)",
                    (plan_id, node, digest, at),
                ).lastrowid
            rows = tx.execute(_TURNS, (number,)).fetchall()
            return Conversation(
                id=str(number),
                plan_id=plan_id,
                node=node,
                digest=digest,
                turns=tuple(map(_turn, rows)),
            )

        return self._store.write(write)

    def keep(self, conversation_id: str, turn: Turn) -> None:
        """Keep the next turn; CA6205 when it is not the next, or the conversation is over."""
        number, at = int(conversation_id), self._clock()
        usage = {name: n for name in USAGE_FIELDS if (n := getattr(turn.usage, name))}
        about = {
            "conversation": conversation_id,
            "turn": turn.number,
            "attempt": turn.attempt,
            "model": turn.model,
            "usage": usage,
            "cost": turn.cost.pico,
            "reservation": turn.reservation,
        }

        def write(tx: Transaction) -> bool:
            found = tx.execute(_IS_NEXT, (number, turn.number)).fetchone()
            if found is None:
                return False
            plan_id, node = found
            tx.execute(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    number,
                    turn.number,
                    turn.attempt,
                    turn.model,
                    turn.request,
                    turn.response,
                    json.dumps(usage),
                    turn.cost.pico,
                    turn.reservation,
                    turn.dropped,
                    at,
                ),
            )
            tx.event("model.answered", {**about, "node": node}, at=at, plan=plan_id)
            return True

        # Returned, not raised: a refusal costs its neighbours in the group nothing.
        if not self._store.write(write):
            raise not_the_next(conversation_id, turn)

    def give_up(self, conversation_id: str) -> None:
        """End a conversation that nobody can go on with; ended already is fine."""
        number = int(conversation_id)
        self._store.write(lambda tx: tx.execute(_GIVE_UP, (number,)))


def _turn(row: tuple[Any, ...]) -> Turn:
    number, attempt, model, request, response, usage, cost, reservation, dropped = row
    return Turn(
        number=number,
        attempt=attempt,
        model=model,
        request=request,
        response=response,
        usage=Usage(**json.loads(usage)),
        cost=Money(cost),
        reservation=reservation,
        dropped=dropped,
    )
