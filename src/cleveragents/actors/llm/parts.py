"""What model actors work with; one of each for all of them, wired once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cleveragents.actors.pause import Pause, pause
from cleveragents.application.services.circuit_breaker import CircuitBreaker
from cleveragents.providers.model_access.rate_limiter import RateLimiter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cleveragents.actors.llm.admission import Prices
    from cleveragents.actors.tool_service import ToolService
    from cleveragents.application.conversations import Conversations
    from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
    from cleveragents.domain.stop_signal import StopSignal
    from cleveragents.providers.model_access.call import Answer, Call


class Line(Protocol):
    """Carries calls to models; safe to call from any thread."""

    def check(self, model: str, base_url: str | None = None) -> None:
        """Refuse what cannot be asked: no such name, key or package."""
        ...

    def request(
        self,
        call: Call,
        *,
        stop: StopSignal | None = None,
        on_text: Callable[[str], object] | None = None,
    ) -> Answer:
        """Ask a model and wait for its whole answer; `CallFailed` says what is known of the bill.

        A stop ends the call at once with `Stopped`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmParts:
    """What model actors share; every part is safe for any number of threads."""

    line: Line
    prices: Prices
    errors: ErrorRecoveryService
    conversations: Conversations
    tools: ToolService
    #: The tree of the user: where its own prompts are, and where context is looked for.
    root: Path | None = None
    #: Pauses a model that keeps failing; its names are `provider:model`.
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    limiter: RateLimiter = field(default_factory=RateLimiter)
    pause: Pause = field(default=pause)
    #: How long a call may wait for its turn, at the rate limit and at the gate of its provider.
    wait_s_max: float = 600.0
