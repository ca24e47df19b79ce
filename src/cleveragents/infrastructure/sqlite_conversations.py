"""The conversations with models in the durable store."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.conversations import Conversation, Turn, not_the_next
from cleveragents.domain.money import Money
from cleveragents.domain.usage import Usage
from cleveragents.infrastructure.purses import HeldMoney
from cleveragents.infrastructure.stored_text import check_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.application.attempts import Held
    from cleveragents.infrastructure.ledger import Posted
    from cleveragents.infrastructure.store import Store
    from cleveragents.infrastructure.transaction import Transaction

_OPEN: Final = "SELECT id, digest FROM conversations WHERE plan = ? AND node = ? AND state = 'open'"
_TURNS: Final = (
    "SELECT number, attempt, model, request, response, usage, cost, reservation, dropped "
    "FROM turns WHERE conversation = ? ORDER BY number"
)
# The number is the fence: only the next number is taken, and only while it is open.
_IS_NEXT: Final = (
    "SELECT plan, node FROM conversations c WHERE id = ? AND state = 'open' "
    "AND ? = 1 + (SELECT coalesce(max(number), 0) FROM turns WHERE conversation = c.id)"
)
_GIVE_UP: Final = "UPDATE conversations SET state = 'given up' WHERE id = ?"


class SqliteConversations:
    """A `Conversations` whose every method is one transaction of the durable store.

    Safe for any number of threads and processes on one file. A turn is in the store when `keep`
    returns, together with an event of the audit trail that tells its model, usage and cost.
    One that is paid in the same step does not wait for the disk, as `Store` says: should the
    machine die before it is there, its promise is, which was on the disk before it was asked.
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

    def keep(self, conversation_id: str, turn: Turn, held: Held | None = None) -> None:
        """Keep the next turn; CA6205 when it is not the next, or the conversation is over."""
        paying = held.settlement(turn.cost, self._store) if isinstance(held, HeldMoney) else None
        at = self._clock()

        def write(tx: Transaction) -> tuple[bool, Posted | None]:
            # Returned, not raised: a refusal costs its neighbours in the group nothing.
            kept = self._insert(tx, int(conversation_id), turn, at)
            return kept, paying.write(tx) if kept and paying is not None else None

        kept, posted = self._store.write(write, sync=paying is None)
        if not kept:
            raise not_the_next(conversation_id, turn)
        if paying is not None and posted is not None:
            paying.done(posted)
        elif held is not None:
            held.settle(turn.cost)

    def _insert(self, tx: Transaction, conversation: int, turn: Turn, at: float) -> bool:
        """Write a turn down; false when it is not the next."""
        found = tx.execute(_IS_NEXT, (conversation, turn.number)).fetchone()
        if found is None:
            return False
        plan_id, node = found
        usage = turn.usage.counted
        tx.execute(
            "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                conversation,
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
        about = {
            "conversation": str(conversation),
            "turn": turn.number,
            "node": node,
            "attempt": turn.attempt,
            "model": turn.model,
            "usage": usage,
            "cost": turn.cost.pico,
            "reservation": turn.reservation,
        }
        tx.event("model.answered", about, at=at, plan=plan_id)
        return True

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
