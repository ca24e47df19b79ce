"""OpenAI's chat completions, and the many servers that speak like it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from cleveragents.testing.dialects.dialect import CREATED_S, Prompt, Refused, event, plain
from cleveragents.testing.dialects.openai_refusals import compatible_refused, openai_refused
from cleveragents.testing.script import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cleveragents.domain.usage import Usage
    from cleveragents.testing.answer import Answer, Part
    from cleveragents.testing.script import ProtocolName, Refusal, Role

_FINISH = {"stop": "stop", "length": "length", "calls": "tool_calls", "filter": "content_filter"}
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "tool": "tool",
}


class OpenAiChat:
    """`/v1/chat/completions` of OpenAI."""

    name: ProtocolName = "openai-chat"
    path: re.Pattern[str] = re.compile(r"/v1/chat/completions")
    counts: ClassVar[frozenset[str]] = frozenset({"cache_read_tokens", "cache_write_tokens"})

    def read(self, path: str, body: Mapping[str, Any]) -> Prompt:  # noqa: ARG002  # the protocol's
        """Understand a request."""
        tools = tuple(body.get("tools") or ())
        return Prompt(
            model=body["model"],
            messages=tuple(_message(one) for one in body["messages"]),
            tools=tools,
            tool_names=tuple(tool["function"]["name"] for tool in tools),
            max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
            stream=bool(body.get("stream")),
        )

    def raw_usage(self, usage: Usage) -> dict[str, Any]:
        """Say usage in OpenAI's words: cached and reasoning tokens are parts of the whole."""
        return {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "prompt_tokens_details": {
                "cached_tokens": usage.cache_read_tokens,
                "cache_write_tokens": usage.cache_write_tokens,
                "audio_tokens": 0,
            },
            "completion_tokens_details": {
                "reasoning_tokens": usage.reasoning_tokens,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        text = "".join(part.text for part in answer.parts if part.kind == "text")
        thought = "".join(part.text for part in answer.parts if part.kind == "thinking")
        calls = [_call(part, part.text) for part in answer.parts if part.kind == "call"]
        message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
        if thought:
            message["reasoning_content"] = thought
        if calls:
            message["tool_calls"] = calls
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _FINISH[answer.finish],
        }
        body = {**self._head(answer, "chat.completion"), "choices": [choice]}
        if answer.told is not None:
            body["usage"] = self.raw_usage(answer.told)
        return body

    def opening(self, answer: Answer) -> Iterator[str]:
        """Yield the chunk that names the role."""
        yield self._chunk(answer, {"role": "assistant", "content": "", "refusal": None})

    def content(self, answer: Answer, part: Part) -> Iterator[str]:
        """Yield the chunks of one part; reasoning goes where compatible servers put it."""
        if part.kind == "call":
            yield self._chunk(
                answer, {"tool_calls": [{"index": part.call_index, **_call(part, "")}]}
            )
        for piece in part.pieces():
            if part.kind == "call":
                grown = {"index": part.call_index, "function": {"arguments": piece}}
                yield self._chunk(answer, {"tool_calls": [grown]})
            else:
                field = "content" if part.kind == "text" else "reasoning_content"
                yield self._chunk(answer, {field: piece})

    def closing(self, answer: Answer) -> Iterator[str]:
        """Yield the finish, the usage if it was asked for, and the end."""
        yield self._chunk(answer, {}, _FINISH[answer.finish])
        options = answer.asked.body.get("stream_options") or {}
        if options.get("include_usage") and answer.told is not None:
            head = self._head(answer, "chat.completion.chunk")
            yield event({**head, "choices": [], "usage": self.raw_usage(answer.told)})
        yield event("[DONE]")

    def refused(self, why: Refusal, model: str, retry_after_s: float | None) -> Refused:
        """Return a refusal as OpenAI words it."""
        return openai_refused(why, model, retry_after_s)

    def error_event(self, why: Refusal, answer: Answer) -> str:
        """Return the error object that takes the place of a chunk."""
        body = self.refused(why, answer.asked.model, None).body
        error = {"message": body} if isinstance(body, str) else body.get("error", body)
        return event({"error": error})

    @staticmethod
    def _head(answer: Answer, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{answer.name}",
            "object": kind,
            "created": CREATED_S,
            "model": answer.asked.model,
            "service_tier": "default",
            "system_fingerprint": "fp_loopback",
        }

    def _chunk(self, answer: Answer, delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        head = self._head(answer, "chat.completion.chunk")
        return event({**head, "choices": [choice], "usage": None})


class OpenAiCompatible(OpenAiChat):
    """The same protocol as vLLM, Ollama and OpenRouter speak it: their refusals are their own."""

    name: ProtocolName = "openai-compatible"
    path: re.Pattern[str] = re.compile(r"/compatible/v1/chat/completions")

    def refused(self, why: Refusal, model: str, retry_after_s: float | None) -> Refused:
        """Return a refusal as one of those servers words it."""
        return compatible_refused(why, model, retry_after_s)


def _call(part: Part, arguments: str) -> dict[str, Any]:
    function = {"name": part.name, "arguments": arguments}
    return {"id": part.call_id, "type": "function", "function": function}


def _message(message: Mapping[str, Any]) -> Message:
    calls = [
        f"{call['function']['name']}({call['function']['arguments']})"
        for call in message.get("tool_calls") or ()
    ]
    texts = [plain(message.get("content")), *calls]
    role = _ROLES.get(message["role"], "user")
    return Message(role, "\n".join(text for text in texts if text))
