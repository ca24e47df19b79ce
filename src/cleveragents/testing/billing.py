"""How the model server counts and bills: one fixed rule, so that a test can compute it too."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.domain.usage import Usage
    from cleveragents.testing.script import Message, ProtocolName

CHARS_PER_TOKEN: Final = 4
MESSAGE_TOKENS: Final = 4
TOOL_TOKENS: Final = 8
PROMPT_TOKENS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What the provider charges for one request."""

    number: int
    protocol: ProtocolName
    model: str
    #: What is charged.
    usage: Usage
    #: The usage as the client was told it, in the protocol's words; None if it was told nothing.
    raw: Mapping[str, Any] | None
    #: Whether everything was sent and could be read.
    whole: bool


def count_tokens(text: str) -> int:
    """Count the tokens of a text: one for every four characters begun."""
    return -(-len(text) // CHARS_PER_TOKEN)


def count_prompt(messages: tuple[Message, ...], tools: tuple[Mapping[str, Any], ...]) -> int:
    """Count the tokens of a prompt: texts, declarations of tools, and fixed overheads."""
    spoken = sum(MESSAGE_TOKENS + count_tokens(message.text) for message in messages)
    declared = sum(TOOL_TOKENS + count_tokens(json.dumps(tool)) for tool in tools)
    return PROMPT_TOKENS + spoken + declared
