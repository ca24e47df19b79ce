"""What messages and tools weigh: how many bytes they are as JSON, and a digest of these."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.tools import ToolDefinition

    from cleveragents.providers.model_access.token_bound import Digested

__all__ = ["Weight", "Weights"]

#: Not weighed of any request in a list: every one carries them, while only the last are sent.
_NOT_OF_REQUESTS: Final = {"__all__": {"instructions"}}
#: Not weighed of any answer in a list: what tells about it.
_NOT_OF_ANSWERS: Final = {"__all__": {"usage", "metadata", "provider_details"}}


@dataclass(frozen=True, slots=True)
class Weight:
    """How long something is as JSON, and what tells it from all else."""

    size_bytes: int
    digest: bytes

    @classmethod
    def of(cls, written: bytes) -> Weight:
        """Weigh what was written."""
        return cls(len(written), hashlib.sha256(written).digest())


class Weights:
    """Weighs each message and each set of tools once; for the one thread that leads a conversation.

    A conversation is sent whole with every question, and only its end is new. What was weighed
    must not be changed afterwards: a message of another content is another message.
    """

    def __init__(self) -> None:
        # With the thing itself: while it is here, no other can have its number.
        self._known: dict[int, tuple[object, Weight]] = {}
        #: The question that was digested last: the next one begins with it, as a rule.
        self.digested: Digested | None = None

    def of_message(self, message: ModelMessage) -> Weight:
        """Return what a message weighs, as far as it is sent."""
        return self._weighed(message, _message_json)

    def of_tools(self, tools: tuple[ToolDefinition, ...]) -> Weight:
        """Return what tools weigh."""
        return self._weighed(tools, _tools_json)

    def _weighed(self, thing: Any, written: Callable[[Any], bytes]) -> Weight:
        known = self._known.get(id(thing))
        if known is None:
            known = self._known[id(thing)] = (thing, Weight.of(written(thing)))
        return known[1]


def _tools_json(tools: tuple[ToolDefinition, ...]) -> bytes:
    from pydantic_core import to_json

    return to_json(tools)


def _message_json(message: ModelMessage) -> bytes:
    """Write a message: all that is sent of it, and more."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter
    from pydantic_core import PydanticSerializationError

    left_out = _NOT_OF_REQUESTS if message.kind == "request" else _NOT_OF_ANSWERS
    try:
        return ModelMessagesTypeAdapter.dump_json(
            [message], exclude=left_out, exclude_none=True, exclude_defaults=True
        )
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        raise RequestError(
            "A message must be text that UTF-8 can write",
            facts={"reason": type(error).__name__},
            hint='Decode files with `errors="replace"` before they go into a message',
        ) from error
