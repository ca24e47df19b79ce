"""What each provider's protocol looks like on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.testing.dialects.anthropic_messages import AnthropicMessages
from cleveragents.testing.dialects.google_generate import GoogleGenerate
from cleveragents.testing.dialects.openai_chat import OpenAiChat, OpenAiCompatible
from cleveragents.testing.dialects.openai_responses import OpenAiResponses

if TYPE_CHECKING:
    from cleveragents.testing.dialects.dialect import Dialect

DIALECTS: Final[tuple[Dialect, ...]] = (
    OpenAiChat(),
    OpenAiCompatible(),
    OpenAiResponses(),
    AnthropicMessages(),
    GoogleGenerate(),
)


def dialect_of(path: str) -> Dialect | None:
    """Return who speaks at this path, without its query."""
    return next((one for one in DIALECTS if one.path.fullmatch(path)), None)
