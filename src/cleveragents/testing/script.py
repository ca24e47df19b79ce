"""The words of a script: what a model server is asked, and what it answers step by step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cleveragents.domain.usage import Usage

ProtocolName: TypeAlias = Literal[
    "openai-chat", "openai-compatible", "openai-responses", "anthropic", "google"
]
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation as plain text; a call of a tool reads `name({"x": 1})`."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as the server understood it."""

    #: Counted from 1, over all models.
    number: int
    protocol: ProtocolName
    model: str
    messages: tuple[Message, ...]
    #: The names of the tools that the model may call.
    tools: tuple[str, ...] = ()
    max_tokens: int | None = None
    stream: bool = False
    #: Names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: The whole request as it came.
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def turns(self) -> int:
        """How often the model has spoken in this conversation before."""
        roles = [message.role for message in self.messages]
        before = ["user", *roles]
        # Calls and text of one answer may come back as several items, one after the other.
        return sum(role == "assistant" != last for last, role in zip(before, roles, strict=False))

    @property
    def text(self) -> str:
        """The whole conversation as one text, to look for words in."""
        return "\n".join(message.text for message in self.messages)


class Refusal(StrEnum):
    """Why a provider refuses; each protocol sends it with its own status, code and sentence."""

    RATE_LIMIT = "rate limit"
    QUOTA = "quota"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server error"
    GATEWAY_TIMEOUT = "gateway timeout"
    CONTEXT_LENGTH = "context length"
    OUTPUT_LENGTH = "output length"
    TOO_LARGE = "too large"
    CONTENT_FILTER = "content filter"
    INVALID_KEY = "invalid key"
    FORBIDDEN = "forbidden"
    UNKNOWN_MODEL = "unknown model"
    BAD_REQUEST = "bad request"


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Reason in words that the client can read, where the protocol has a place for them."""

    text: str


@dataclass(frozen=True, slots=True)
class CallTool:
    """Ask for a call of a tool; several of them in one reply are calls in parallel."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    @property
    def json(self) -> str:
        """The arguments as they are sent; a text goes out as it is, be it JSON or not."""
        given = self.arguments
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """Be slow: nothing is sent for this long; ends early when the client leaves or at `close`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an HTTP status and the provider's own error body; nothing is billed.

    `status` sends another status with the same body.
    """

    why: Refusal
    retry_after_s: float | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True)
class BreakOff:
    """Send an error event inside the stream, after what was said; without a stream, refuse."""

    why: Refusal = Refusal.OVERLOADED


@dataclass(frozen=True, slots=True)
class Cut:
    """Drop the connection: after so many events of the stream, else before its closing events.

    Without a stream half of the body is sent; after 0 events nothing at all.
    A `clean` cut ends the body of a stream as HTTP wants it: only its last events are missing.
    """

    after_events: int | None = None
    clean: bool = False


@dataclass(frozen=True, slots=True)
class Garble:
    """Send what is no JSON: as the body, or as an event after what was said."""


@dataclass(frozen=True, slots=True)
class Withhold:
    """End the answer as a content filter does, with HTTP 200."""


Step: TypeAlias = Say | Think | CallTool | Wait | Refuse | BreakOff | Cut | Garble | Withhold
_LAST = (Refuse, BreakOff, Cut, Garble, Withhold)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer: its steps, and what the provider counts besides the text.

    Without steps it is an empty answer.
    Cached tokens are part of the prompt, and never more than it has.
    """

    steps: tuple[Step | str, ...] = ()
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    #: Reasoning that is billed and not shown, besides the steps `Think`.
    reasoning_tokens: int = 0
    #: What the client is told about usage: what was counted, something wrong, or (None) nothing.
    usage_sent: Usage | Literal["counted"] | None = "counted"

    def __post_init__(self) -> None:
        for step in self.steps[:-1]:
            if isinstance(step, _LAST):
                raise RequestError(
                    f"`{type(step).__name__}` must be the last step of a reply, got {self.steps!r}"
                )
        said = [step for step in self.steps[:-1] if not isinstance(step, Wait)]
        if said and isinstance(self.steps[-1], Refuse):
            raise RequestError(
                f"`Refuse` must come before anything is said, got {self.steps!r}",
                hint="Use `BreakOff` for an error inside a stream",
            )


Answerable: TypeAlias = "Reply | Step | str | Sequence[Step | str]"


def reply_of(answer: Answerable) -> Reply:
    """Return a script's answer in its full form: a text is said, a step is a reply of one step."""
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, str | Step):
        return Reply(steps=(answer,))
    return Reply(steps=tuple(answer))
