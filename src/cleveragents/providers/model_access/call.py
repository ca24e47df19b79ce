"""One question to a model, and its answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cleveragents.domain.errors import RequestError
from cleveragents.providers.model_access.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.tools import ToolDefinition

    from cleveragents.domain.usage import Usage

__all__ = ["Answer", "Call"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to a model: messages and tools in pydantic-ai's words."""

    #: `provider:model`
    model: str
    messages: Sequence[ModelMessage]
    tools: tuple[ToolDefinition, ...] = ()
    #: The longest answer, reasoning included; always sent, because money is reserved for it.
    tokens_max: int
    temperature: float | None = None
    #: Another address that speaks the provider's protocol.
    base_url: str | None = None
    #: How long the whole call may take.
    timeout_s: float = 600.0
    #: Knows what was weighed before, where one thread asks again and again in a conversation.
    weights: Weights = field(default_factory=Weights, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.tokens_max < 1:
            raise RequestError(f"`tokens_max` must be a whole number from 1, got {self.tokens_max}")
        if not 0 < self.timeout_s < math.inf:
            raise RequestError(f"`timeout_s` must be more than 0 seconds, got {self.timeout_s}")
        if not self.messages:
            raise RequestError("`messages` must hold at least one message, got none")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered, whole, and what the provider says that it used."""

    response: ModelResponse
    #: None if the provider did not say: unknown is not zero.
    usage: Usage | None
