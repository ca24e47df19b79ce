"""The most input tokens that a call can be billed for, known before it is sent.

A token is at least one byte, so the bytes of everything that is sent bound its tokens; safe, and
about four times too much. But a provider has counted a conversation exactly when it answered:
that count then stands for everything up to the answer, and bytes bound only what is new.
A count holds for the question that it was made for. Each answer is stamped with a digest of its
question (model, address, tools, instructions, messages), and the count of an answer is used only
if the conversation still begins with that very question.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from operator import is_
from typing import TYPE_CHECKING, Any, Final

from cleveragents.providers.model_access.usage_of import usage_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from hashlib import _Hash

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.tools import ToolDefinition

    from cleveragents.providers.model_access.call import Call
    from cleveragents.providers.model_access.weights import Weights

__all__ = ["Digested", "digest_of", "input_bound", "stamp"]

#: What a provider puts around a request, and around each message or part of one.
_REQUEST_TOKENS: Final = 64
_PART_TOKENS: Final = 16
#: The text that a provider adds when there are tools: Anthropic says up to 675 tokens.
_TOOLS_TOKENS: Final = 1_024
#: A provider writes a schema in its own words, which may be longer than JSON.
_TOOL_GROWTH: Final = 2
#: The most that one image costs; where a provider is not named, as much as the dearest.
_IMAGE_TOKENS: Final[Mapping[str, int]] = {"anthropic": 5_000, "google": 10_000}
_IMAGE_TOKENS_MAX: Final = 50_000
#: Documents, sounds and films cost by pages and seconds: bounded by the largest window there is.
_MEDIA_TOKENS_MAX: Final = 2_000_000

_STAMP: Final = "cleveragents"


def input_bound(call: Call, *, window: int | None = None) -> int:
    """Return how many input tokens a call can cost at most.

    `window`, if known, is the context window of the model: more than that is refused, not billed.
    """
    start, counted = _counted_start(call)
    new = call.messages[start:]
    bound = _bytes_of(new, call.weights) + _media_of(new, call.model)
    if start:
        bound += counted
    else:
        bound += _REQUEST_TOKENS + len(_instructions(new).encode(errors="replace"))
        if call.tools:
            bound += _TOOLS_TOKENS + _TOOL_GROWTH * call.weights.of_tools(call.tools).size_bytes
    return bound if window is None else min(bound, window)


@dataclass(frozen=True, slots=True)
class Digested:
    """A question that was digested; where another one begins with it, only the rest is new."""

    model: str
    base_url: str | None
    tools: tuple[ToolDefinition, ...]
    messages: Sequence[ModelMessage]
    instructions: str
    #: Never updated, only copied.
    sha256: _Hash = field(repr=False)

    def begins(self, call: Call, messages: Sequence[ModelMessage]) -> bool:
        """Say whether a question is this one and more: the very same messages, not equal ones."""
        count = len(self.messages)
        return (
            (self.model, self.base_url) == (call.model, call.base_url)
            and self.tools is call.tools
            and count <= len(messages)
            and all(map(is_, self.messages, messages))
            and _instructions(messages[count:], self.instructions) == self.instructions
        )


def digest_of(call: Call, until: int | None = None) -> str:
    """Return what tells one question from another: its first `until` messages and all else."""
    return _digested(call, until).sha256.hexdigest()


def stamp(response: ModelResponse, digest: str) -> ModelResponse:
    """Return the answer, marked with the digest of its question; the mark is never sent."""
    return replace(response, metadata={**(response.metadata or {}), _STAMP: digest})


def _digested(call: Call, until: int | None) -> Digested:
    """Digest a question; what was digested before is not looked at again."""
    messages, weights = call.messages[:until], call.weights
    known = weights.digested
    if known is not None and known.begins(call, messages):
        new, instructions = messages[len(known.messages) :], known.instructions
        if not new:
            return known
        sha256 = known.sha256.copy()
    else:
        new, instructions = messages, _instructions(messages)
        head = (call.model, call.base_url or "", instructions)
        sha256 = hashlib.sha256("\0".join(head).encode(errors="replace"))
        sha256.update(weights.of_tools(call.tools).digest)
    # All are of one length, so that nothing can pass for something else.
    sha256.update(b"".join([weights.of_message(one).digest for one in new]))
    digested = Digested(call.model, call.base_url, call.tools, messages, instructions, sha256)
    weights.digested = digested
    return digested


def _counted_start(call: Call) -> tuple[int, int]:
    """Return how many messages the last answer counted, and how many tokens they are."""
    for index in range(len(call.messages) - 1, -1, -1):
        message = call.messages[index]
        if message.kind != "response":
            continue
        stamped = (message.metadata or {}).get(_STAMP)
        usage = usage_of(message.usage) if stamped else None
        if usage is None:
            break
        question = _digested(call, index)
        told = question.instructions
        same = _instructions(call.messages[index:], told) == told
        if not same or stamped != question.sha256.hexdigest():
            break
        # Reasoning goes back to some providers, and its tokens cannot be read off its text.
        thought = any(part.part_kind == "thinking" for part in message.parts)
        return index, usage.input_tokens + (usage.output_tokens if thought else 0)
    return 0, 0


def _bytes_of(messages: Sequence[ModelMessage], weights: Weights) -> int:
    """Count the bytes of messages as JSON, which holds what is sent and more."""
    around = _PART_TOKENS * sum(1 + len(message.parts) for message in messages)
    return around + sum(weights.of_message(message).size_bytes for message in messages)


def _media_of(messages: Sequence[ModelMessage], model: str) -> int:
    """Return what media cost, less what their data weigh in JSON."""
    tokens = 0
    for media in _media(messages):
        kind, data = str(media.media_type).partition("/")[0], getattr(media, "data", b"")
        if kind == "text" and data:
            continue  # goes as text, so its bytes count
        image = _IMAGE_TOKENS.get(model.partition(":")[0], _IMAGE_TOKENS_MAX)
        tokens += image if kind == "image" else _MEDIA_TOKENS_MAX
        tokens -= 4 * -(-len(data) // 3)  # as base64, which the bytes have counted
    return tokens


def _media(messages: Sequence[ModelMessage]) -> Iterator[Any]:
    """Find all files in messages, whoever sent them."""
    # Text alone has none, and nearly all that is said is text alone.
    parts = [part for message in messages for part in message.parts if not _is_text(part)]
    if not parts:
        return
    from pydantic_ai.messages import BinaryContent, FilePart, FileUrl, UploadedFile

    for part in parts:
        content = part.content if hasattr(part, "content") else ()
        if isinstance(part, FilePart):
            yield content
            continue
        items = getattr(part, "files", None) or (
            content if isinstance(content, list | tuple) else ()
        )
        yield from (one for one in items if isinstance(one, BinaryContent | FileUrl | UploadedFile))


def _is_text(part: Any) -> bool:
    return isinstance(getattr(part, "content", None), str)


def _instructions(messages: Sequence[ModelMessage], before: str = "") -> str:
    """Return the last instructions in messages; those from before where there are none."""
    for one in reversed(messages):
        if one.kind == "request" and one.instructions is not None:
            return one.instructions
    return before
