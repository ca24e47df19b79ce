"""What is kept of conversations with models: every answer that was paid for, before it is used.

A conversation belongs to one node, or to one instance of a fan-out, and outlives its attempts:
whoever works on the node next goes on with it, and asks nothing again that was answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cleveragents.domain.errors import PlanError

if TYPE_CHECKING:
    from cleveragents.application.attempts import Held
    from cleveragents.domain.money import Money
    from cleveragents.domain.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of a model, what was new in the question, and what it cost."""

    #: From 1, without gaps.
    number: int
    attempt: int
    model: str
    #: JSON, as whoever asked writes and reads it; nobody else looks into it.
    request: str
    response: str
    usage: Usage
    cost: Money
    #: What the money was promised under; None where promises have no names.
    reservation: str | None = None
    #: How many of the oldest results of tools the question left out, to be short enough.
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation as it stood when it was opened."""

    id: str
    plan_id: str
    node: str
    #: What it is about; about something else there is another conversation.
    digest: str
    turns: tuple[Turn, ...] = ()


class Conversations(Protocol):
    """Keeps conversations; at most one of a node is open.

    Every method is atomic, and safe to call from any thread, and from every process that shares
    what is kept. What a method returned is kept; what a method refused left no trace.
    """

    def open(self, plan_id: str, node: str, digest: str) -> Conversation:
        """Return the open conversation of a node, or begin one.

        One that is about something else is given up first.
        """
        ...

    def keep(self, conversation_id: str, turn: Turn, held: Held | None = None) -> None:
        """Keep the next turn; CA6205 when the conversation is over, or has a turn of this number.

        The number is a fence: of two processes that take themselves for the owner, one is refused.
        With `held`, the money that is promised to it, the turn is paid: in the same step where
        the books are kept in the same place, else right after it.
        """
        ...

    def give_up(self, conversation_id: str) -> None:
        """End a conversation that nobody can go on with; ended already is fine."""
        ...


def not_the_next(conversation_id: str, turn: Turn) -> PlanError:
    """Return the refusal of a turn that cannot follow those that are kept."""
    return PlanError(
        f"Answer {turn.number} cannot be kept in conversation `{conversation_id}`: it is over, or"
        " goes on in another process",
        code="CA6205",
        facts={"conversation": conversation_id, "turn": turn.number},
    )
