"""Anthropic's messages."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from cleveragents.testing.dialects.dialect import Prompt, Refused, event, plain, retry_headers
from cleveragents.testing.script import Message, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cleveragents.domain.usage import Usage
    from cleveragents.testing.answer import Answer, Part
    from cleveragents.testing.script import ProtocolName, Role

_FINISH = {"stop": "end_turn", "length": "max_tokens", "calls": "tool_use", "filter": "refusal"}
_SIGNATURE: Final = "bG9vcGJhY2s="
_BAD = "invalid_request_error"

#: Status, type and sentence.
_REFUSALS: Mapping[Refusal, tuple[int, str, str]] = {
    Refusal.RATE_LIMIT: (
        429,
        "rate_limit_error",
        (
            "This request would exceed your organization's rate limit of 40,000 input tokens "
            "per minute."
        ),
    ),
    Refusal.QUOTA: (
        400,
        _BAD,
        (
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & "
            "Billing to upgrade or purchase credits."
        ),
    ),
    Refusal.OVERLOADED: (529, "overloaded_error", "Overloaded"),
    Refusal.SERVER_ERROR: (500, "api_error", "Internal server error"),
    Refusal.GATEWAY_TIMEOUT: (504, "timeout_error", "Request timed out"),
    Refusal.CONTEXT_LENGTH: (
        400,
        _BAD,
        "prompt is too long: 210000 tokens > 200000 maximum",
    ),
    Refusal.OUTPUT_LENGTH: (
        400,
        _BAD,
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease "
            "input length or `max_tokens` and try again"
        ),
    ),
    Refusal.TOO_LARGE: (413, "request_too_large", "Request exceeds the maximum size"),
    Refusal.CONTENT_FILTER: (400, _BAD, "Output blocked by content filtering policy"),
    Refusal.INVALID_KEY: (401, "authentication_error", "invalid x-api-key"),
    Refusal.FORBIDDEN: (
        403,
        "permission_error",
        "Your API key does not have permission to use the specified resource.",
    ),
    Refusal.UNKNOWN_MODEL: (404, "not_found_error", "model: {model}"),
    Refusal.BAD_REQUEST: (
        400,
        _BAD,
        "temperature: Input should be less than or equal to 1",
    ),
}


class AnthropicMessages:
    """`/v1/messages` of Anthropic."""

    name: ProtocolName = "anthropic"
    path: re.Pattern[str] = re.compile(r"/v1/messages")
    counts: ClassVar[frozenset[str]] = frozenset(
        {"cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens"}
    )

    def read(self, path: str, body: Mapping[str, Any]) -> Prompt:  # noqa: ARG002  # the protocol's
        """Understand a request."""
        told = [Message("system", plain(body["system"]))] if body.get("system") else []
        said = [message for one in body["messages"] for message in _messages(one)]
        tools = tuple(body.get("tools") or ())
        return Prompt(
            model=body["model"],
            messages=(*told, *said),
            tools=tools,
            tool_names=tuple(tool["name"] for tool in tools),
            max_tokens=body["max_tokens"],
            stream=bool(body.get("stream")),
        )

    def raw_usage(self, usage: Usage) -> dict[str, Any]:
        """Say usage in Anthropic's words: cached tokens stand apart from the other input."""
        written_1h = usage.cache_write_1h_tokens
        cached = usage.cache_read_tokens + usage.cache_write_tokens
        return {
            "input_tokens": usage.input_tokens - cached,
            "cache_creation_input_tokens": usage.cache_write_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_write_tokens - written_1h,
                "ephemeral_1h_input_tokens": written_1h,
            },
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
            "service_tier": "standard",
        }

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        body = {
            **_head(answer),
            "content": [_block(part) for part in answer.parts],
            "stop_reason": _FINISH[answer.finish],
        }
        if answer.told is not None:
            body["usage"] = self.raw_usage(answer.told)
        return body

    def opening(self, answer: Answer) -> Iterator[str]:
        """Yield the begin of the message: the input is counted, of the output one token."""
        usage: dict[str, Any] = {}
        if answer.told is not None:
            usage = {"usage": {**self.raw_usage(answer.told), "output_tokens": 1}}
            del usage["usage"]["output_tokens_details"]
        yield _event("message_start", message={**_head(answer), **usage})
        yield _event("ping")

    def content(self, answer: Answer, part: Part) -> Iterator[str]:  # noqa: ARG002  # the protocol's
        """Yield the events of one block."""
        yield _event("content_block_start", index=part.index, content_block=_empty_block(part))
        kind, field = {
            "text": ("text_delta", "text"),
            "thinking": ("thinking_delta", "thinking"),
            "call": ("input_json_delta", "partial_json"),
        }[part.kind]
        deltas = [{"type": kind, field: piece} for piece in part.pieces()]
        if part.kind == "thinking":
            deltas.append({"type": "signature_delta", "signature": _SIGNATURE})
        for delta in deltas:
            yield _event("content_block_delta", index=part.index, delta=delta)
        yield _event("content_block_stop", index=part.index)

    def closing(self, answer: Answer) -> Iterator[str]:
        """Yield the reason of the end with the final usage, and the end."""
        delta = {"stop_reason": _FINISH[answer.finish], "stop_sequence": None}
        usage = {} if answer.told is None else {"usage": self.raw_usage(answer.told)}
        yield _event("message_delta", delta=delta, **usage)
        yield _event("message_stop")

    def refused(self, why: Refusal, model: str, retry_after_s: float | None) -> Refused:
        """Return a refusal as Anthropic words it."""
        status, kind, sentence = _REFUSALS[why]
        error = {"type": kind, "message": sentence.format(model=model)}
        body = {"type": "error", "error": error, "request_id": "req_loopback"}
        return Refused(status, body, retry_headers(retry_after_s))

    def error_event(self, why: Refusal, answer: Answer) -> str:
        """Return the event of a stream that tells of an error."""
        return event(self.refused(why, answer.asked.model, None).body, "error")


def _event(kind: str, **fields: Any) -> str:
    return event({"type": kind, **fields}, kind)


def _head(answer: Answer) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.name}",
        "type": "message",
        "role": "assistant",
        "model": answer.asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _block(part: Part) -> dict[str, Any]:
    if part.kind == "thinking":
        return {"type": "thinking", "thinking": part.text, "signature": _SIGNATURE}
    if part.kind == "text":
        return {"type": "text", "text": part.text}
    return {
        "type": "tool_use",
        "id": part.call_id,
        "name": part.name,
        "input": _object(part.text),
    }


def _empty_block(part: Part) -> dict[str, Any]:
    if part.kind == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    if part.kind == "text":
        return {"type": "text", "text": ""}
    return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": {}}


def _object(text: str) -> Any:
    """Return arguments as an object; those that were cut off come empty, as with Anthropic."""
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _messages(message: Mapping[str, Any]) -> Iterator[Message]:
    role: Role = "assistant" if message["role"] == "assistant" else "user"
    content = message["content"]
    if isinstance(content, str):
        yield Message(role, content)
        return
    for block in content:
        if block["type"] == "tool_result":
            yield Message("tool", plain(block.get("content")))
        elif block["type"] == "tool_use":
            yield Message(role, f"{block['name']}({json.dumps(block['input'])})")
        else:
            yield Message(role, block.get("text") or block.get("thinking") or f"[{block['type']}]")
