"""OpenAI's responses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from cleveragents.testing.dialects.dialect import CREATED_S, Prompt, Refused, event, plain
from cleveragents.testing.dialects.openai_refusals import openai_refused
from cleveragents.testing.script import Message, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cleveragents.domain.usage import Usage
    from cleveragents.testing.answer import Answer, Part
    from cleveragents.testing.script import ProtocolName, Role

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
}
_INCOMPLETE = {"length": "max_output_tokens", "filter": "content_filter"}


class OpenAiResponses:
    """`/v1/responses` of OpenAI."""

    name: ProtocolName = "openai-responses"
    path: re.Pattern[str] = re.compile(r"/v1/responses")
    counts: ClassVar[frozenset[str]] = frozenset({"cache_read_tokens", "cache_write_tokens"})

    def read(self, path: str, body: Mapping[str, Any]) -> Prompt:  # noqa: ARG002  # the protocol's
        """Understand a request."""
        given = body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        told = [Message("system", body["instructions"])] if body.get("instructions") else []
        tools = tuple(body.get("tools") or ())
        return Prompt(
            model=body["model"],
            messages=(*told, *(_message(one) for one in items)),
            tools=tools,
            tool_names=tuple(tool["name"] for tool in tools if "name" in tool),
            max_tokens=body.get("max_output_tokens"),
            stream=bool(body.get("stream")),
        )

    def raw_usage(self, usage: Usage) -> dict[str, Any]:
        """Say usage in the words of the responses."""
        return {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {
                "cached_tokens": usage.cache_read_tokens,
                "cache_write_tokens": usage.cache_write_tokens,
            },
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the finished response."""
        incomplete = _INCOMPLETE.get(answer.finish)
        return {
            **_skeleton(answer),
            "status": "incomplete" if incomplete else "completed",
            "incomplete_details": {"reason": incomplete} if incomplete else None,
            "output": [_item(answer, part, "completed") for part in answer.parts],
            "usage": None if answer.told is None else self.raw_usage(answer.told),
        }

    def opening(self, answer: Answer) -> Iterator[str]:
        """Yield the two events before the content."""
        for number, kind in enumerate(("response.created", "response.in_progress")):
            yield _event(kind, number, response=_skeleton(answer))

    def content(self, answer: Answer, part: Part) -> Iterator[str]:
        """Yield the events of one item of the output."""
        # Numbers rise over the whole stream: each part has a range of its own.
        number = 100 * (part.index + 1)
        where = {"output_index": part.index}
        empty = _item(answer, replace(part, text=""), "in_progress")
        yield _event("response.output_item.added", number, **where, item=empty)
        for kind, fields in _inside(answer, part):
            number += 1
            yield _event(kind, number, **where, item_id=empty["id"], **fields)
        done = _item(answer, part, "completed")
        yield _event("response.output_item.done", number + 1, **where, item=done)

    def closing(self, answer: Answer) -> Iterator[str]:
        """Yield the event that holds the finished response."""
        response = self.whole(answer)
        number = 100 * (len(answer.parts) + 1)
        yield _event(f"response.{response['status']}", number, response=response)

    def refused(self, why: Refusal, model: str, retry_after_s: float | None) -> Refused:
        """Return a refusal as OpenAI words it."""
        refused = openai_refused(why, model, retry_after_s)
        if why is Refusal.UNKNOWN_MODEL:
            # The one that has another status here than in the chat completions.
            return Refused(400, refused.body, refused.headers)
        return refused

    def error_event(self, why: Refusal, answer: Answer) -> str:
        """Return the event of a response that failed half-way."""
        body = self.refused(why, answer.asked.model, None).body
        told = body if not isinstance(body, str) else {"error": {"message": body}}
        error = {
            "code": told["error"].get("code") or "server_error",
            "message": told["error"]["message"],
        }
        failed = {**_skeleton(answer), "status": "failed", "error": error}
        return _event("response.failed", 100 * (len(answer.parts) + 1), response=failed)


def _event(kind: str, number: int, **fields: Any) -> str:
    return event({"type": kind, "sequence_number": number, **fields}, kind)


def _skeleton(answer: Answer) -> dict[str, Any]:
    return {
        "id": f"resp_{answer.name}",
        "object": "response",
        "created_at": CREATED_S,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": answer.asked.max_tokens,
        "model": answer.asked.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "metadata": {},
    }


def _item(answer: Answer, part: Part, status: str) -> dict[str, Any]:
    place = f"{answer.name}_{part.index}"
    if part.kind == "call":
        return {
            "id": f"fc_{place}",
            "type": "function_call",
            "status": status,
            "arguments": part.text,
            "call_id": part.call_id,
            "name": part.name,
        }
    if part.kind == "thinking":
        summary = [{"type": "summary_text", "text": part.text}] if part.text else []
        return {"id": f"rs_{place}", "type": "reasoning", "summary": summary}
    said = {"type": "output_text", "annotations": [], "logprobs": [], "text": part.text}
    return {
        "id": f"msg_{place}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": [said] if part.text else [],
    }


def _inside(answer: Answer, part: Part) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what happens between the begin and the end of an item."""
    if part.kind == "call":
        for piece in part.pieces():
            yield "response.function_call_arguments.delta", {"delta": piece}
        yield (
            "response.function_call_arguments.done",
            {"arguments": part.text, "name": part.name},
        )
        return
    thinking = part.kind == "thinking"
    place = {"summary_index": 0} if thinking else {"content_index": 0}
    frame = "reasoning_summary_part" if thinking else "content_part"
    words = "reasoning_summary_text" if thinking else "output_text"
    extra: dict[str, Any] = {} if thinking else {"logprobs": []}
    kept = _item(answer, part, "completed")["summary" if thinking else "content"]
    whole = kept[0] if kept else {"type": "output_text", "annotations": [], "text": ""}
    yield f"response.{frame}.added", {**place, "part": {**whole, "text": ""}}
    for piece in part.pieces():
        yield f"response.{words}.delta", {**place, "delta": piece, **extra}
    yield f"response.{words}.done", {**place, "text": part.text, **extra}
    yield f"response.{frame}.done", {**place, "part": whole}


def _message(item: Mapping[str, Any]) -> Message:
    kind = item.get("type", "message")
    if kind == "function_call":
        return Message("assistant", f"{item['name']}({item['arguments']})")
    if kind == "function_call_output":
        return Message("tool", plain(item["output"]))
    if kind == "reasoning":
        return Message("assistant", plain(item.get("summary")))
    return Message(_ROLES.get(item.get("role", "user"), "user"), plain(item.get("content")))
