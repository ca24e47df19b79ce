"""What a worker is told to do about a node, and what came of it."""

from __future__ import annotations

import queue
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from cleveragents.domain.error_record import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cleveragents.application.attempts import Actor, Purses, Workbench
    from cleveragents.application.run_journal import NodeRecord
    from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
    from cleveragents.domain import plan_actors
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.error_record import Decision, ErrorRecord
    from cleveragents.domain.errors import CleverAgentsError
    from cleveragents.domain.plan import Node
    from cleveragents.domain.plan_graph import Instance
    from cleveragents.domain.stop_signal import StopSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """What attempts work with; one for all of them, and safe to share."""

    workbench: Workbench
    purses: Purses
    errors: ErrorRecoveryService
    build_actor: Callable[[plan_actors.Actor], Actor]
    find_context: Callable[[ContextRequest], Any] | None = None


class Claim:
    """A right that exactly one caller gets, from any thread."""

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._token.put(None)

    def take(self) -> bool:
        """Return whether the caller is the one."""
        try:
            self._token.get_nowait()
        except queue.Empty:
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One attempt at a node, or the rest of one whose result is kept and not merged yet."""

    plan_id: str
    goal: str
    #: With its defaults, and with its templates as they were written.
    node: Node
    instance: Instance
    #: What is kept of it: running, with the number of this attempt, or merging or conflicted.
    record: NodeRecord
    stop: StopSignal
    #: What templates may use; empty for a node whose result is kept.
    scope: Mapping[str, Any] = field(default_factory=dict)
    session: str | None = None
    #: It can only fail with this: its items or its condition could not be found out.
    fault: CleverAgentsError | None = None
    #: Which of its actors: the first, the one that it falls back on, and so on.
    fall_backs: int = 0
    #: Why there is no further attempt after this one.
    no_attempt: str | None = None
    can_replan: bool = False
    #: Something failed in this plan before, so that a success has retries to give back.
    troubled: bool = False
    #: Who says what became of the attempt: its worker, or the runner that gave it up.
    claim: Claim = field(default_factory=Claim)

    @property
    def time_is_up(self) -> str:
        """The reason that the stop signal gives when the attempt is out of time."""
        return f"the attempt reached its timeout of {self.node.timeout_s:g} s"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an order; `record` is what the journal is told.

    Without a decision the attempt went well, or was stopped because the run ends.
    """

    order: Order
    record: NodeRecord
    error: ErrorRecord | None = None
    decision: Decision | None = None
    #: The journal has it already; if not, nobody hears of it before.
    is_kept: bool = True

    @property
    def again(self) -> bool:
        """Say whether the node is to be run once more."""
        return self.decision is not None and self.decision.action in {
            Action.RETRY,
            Action.FEEDBACK,
            Action.SHRINK,
            Action.FALL_BACK,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """What a person, or a planner, is asked about a fault."""

    plan_id: str
    node: str
    attempt: int
    error: ErrorRecord
    decision: Decision


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person wants: try again, with a word for the actor if there is one; skip; or abort."""

    action: Action = Action.ABORT
    feedback: str = ""


#: Asks a person; it may take its time.
Ask: TypeAlias = "Callable[[Question], Answer]"
#: Returns the node to run in the place of the one that failed, or None.
Replan: TypeAlias = "Callable[[Question], Node | None]"


def actor_name(value: plan_actors.Actor | None) -> str:
    """Return the name of an actor on accounts and in the audit trail, such as `command:pytest`."""
    for word in ("command", "function", "model"):
        told = getattr(value, word, None)
        if told:
            kind = {"function": "python", "model": "llm"}.get(word, word)
            first = told.split()[0] if isinstance(told, str) else told[0]
            return f"{kind}:{first}"[:200]
    return "scripted"
