"""Google's `generateContent`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar

from cleveragents.domain.errors import RequestError
from cleveragents.testing.dialects.dialect import Prompt, Refused, event
from cleveragents.testing.script import Message, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cleveragents.domain.usage import Usage
    from cleveragents.testing.answer import Answer, Part
    from cleveragents.testing.script import ProtocolName, Role

_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "calls": "STOP", "filter": "SAFETY"}
_QUOTA_SENTENCE = "You exceeded your current quota, please check your plan and billing details."
_BAD = "INVALID_ARGUMENT"

#: HTTP status, status and sentence.
_REFUSALS: Mapping[Refusal, tuple[int, str, str]] = {
    Refusal.RATE_LIMIT: (429, "RESOURCE_EXHAUSTED", _QUOTA_SENTENCE),
    Refusal.QUOTA: (429, "RESOURCE_EXHAUSTED", _QUOTA_SENTENCE),
    Refusal.OVERLOADED: (
        503,
        "UNAVAILABLE",
        "The model is overloaded. Please try again later.",
    ),
    Refusal.SERVER_ERROR: (500, "INTERNAL", "An internal error has occurred."),
    Refusal.GATEWAY_TIMEOUT: (
        504,
        "DEADLINE_EXCEEDED",
        "Deadline expired before operation could complete.",
    ),
    Refusal.CONTEXT_LENGTH: (
        400,
        _BAD,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    Refusal.OUTPUT_LENGTH: (
        400,
        _BAD,
        (
            "Unable to submit request because it has a maxOutputTokens value of 90000 but the "
            "supported range is from 1 (inclusive) to 65537 (exclusive)."
        ),
    ),
    Refusal.TOO_LARGE: (
        400,
        _BAD,
        "Request payload size exceeds the limit: 20971520 bytes.",
    ),
    Refusal.INVALID_KEY: (400, _BAD, "API key not valid. Please pass a valid API key."),
    Refusal.FORBIDDEN: (
        403,
        "PERMISSION_DENIED",
        "Generative Language API has not been used in this project before or it is disabled.",
    ),
    Refusal.UNKNOWN_MODEL: (
        404,
        "NOT_FOUND",
        (
            "models/{model} is not found for API version v1beta, or is not supported for "
            "generateContent."
        ),
    ),
    Refusal.BAD_REQUEST: (
        400,
        _BAD,
        "Unable to submit request because temperature must be in the range [0.0, 2.0].",
    ),
}
_QUOTA_IDS = {
    Refusal.RATE_LIMIT: "GenerateRequestsPerMinutePerProjectPerModel",
    Refusal.QUOTA: "GenerateRequestsPerDayPerProjectPerModel",
}


class GoogleGenerate:
    """`/v1beta/models/MODEL:generateContent` (or `/v1`) of Google, and its stream."""

    name: ProtocolName = "google"
    path: re.Pattern[str] = re.compile(
        r"/v1(?:beta)?/models/(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)"
    )
    counts: ClassVar[frozenset[str]] = frozenset({"cache_read_tokens"})

    def read(self, path: str, body: Mapping[str, Any]) -> Prompt:
        """Understand a request; its model stands in the path."""
        match = self.path.fullmatch(path)
        assert match is not None, "the path was matched before"
        told = (body.get("systemInstruction") or {}).get("parts") or []
        said = [message for one in body["contents"] for message in _messages(one)]
        tools = tuple(
            declared
            for tool in body.get("tools") or ()
            for declared in tool.get("functionDeclarations") or ()
        )
        return Prompt(
            model=match["model"],
            messages=(*(Message("system", part["text"]) for part in told), *said),
            tools=tools,
            tool_names=tuple(tool["name"] for tool in tools),
            max_tokens=(body.get("generationConfig") or {}).get("maxOutputTokens"),
            stream=match["method"] == "streamGenerateContent",
        )

    def raw_usage(self, usage: Usage) -> dict[str, Any]:
        """Say usage in Google's words: thoughts stand apart from the other output."""
        return {
            "promptTokenCount": usage.input_tokens,
            "cachedContentTokenCount": usage.cache_read_tokens,
            "candidatesTokenCount": usage.output_tokens - usage.reasoning_tokens,
            "thoughtsTokenCount": usage.reasoning_tokens,
            "totalTokenCount": usage.input_tokens + usage.output_tokens,
        }

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        parts = [_part(part, part.text) for part in answer.parts]
        return self._response(answer, parts, _FINISH[answer.finish])

    def opening(self, answer: Answer) -> Iterator[str]:  # noqa: ARG002  # the protocol's
        """Yield nothing: the first event has content already."""
        return iter(())

    def content(self, answer: Answer, part: Part) -> Iterator[str]:
        """Yield the events of one part; a call comes whole."""
        texts = [part.text] if part.kind == "call" else part.pieces()
        for text in texts:
            yield _event(self._response(answer, [_part(part, text)], None))

    def closing(self, answer: Answer) -> Iterator[str]:
        """Yield the event with the reason of the end."""
        parts = [{"text": ""}] if answer.parts else []
        yield _event(self._response(answer, parts, _FINISH[answer.finish]))

    def refused(self, why: Refusal, model: str, retry_after_s: float | None) -> Refused:
        """Return a refusal as Google words it; the time to come back stands in its details."""
        if why not in _REFUSALS:
            raise RequestError(
                f"Google must have an error for a refusal, got {why!r}",
                hint="Use `Withhold`: its content filter answers with HTTP 200",
            )
        status, name, sentence = _REFUSALS[why]
        error: dict[str, Any] = {
            "code": status,
            "message": sentence.format(model=model),
            "status": name,
        }
        details = list(_details(why, retry_after_s))
        if details:
            error["details"] = details
        return Refused(status, {"error": error})

    def error_event(self, why: Refusal, answer: Answer) -> str:
        """Return the event of a stream that tells of an error."""
        return _event(self.refused(why, answer.asked.model, None).body)

    def _response(
        self, answer: Answer, parts: list[dict[str, Any]], finish: str | None
    ) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if finish is not None:
            candidate["finishReason"] = finish
        body: dict[str, Any] = {
            "candidates": [candidate],
            "modelVersion": answer.asked.model,
            "responseId": f"r{answer.name}",
        }
        if answer.told is not None:
            usage = self.raw_usage(answer.told)
            # Before its end a stream knows the prompt alone.
            known = usage if finish is not None else {"promptTokenCount": usage["promptTokenCount"]}
            body["usageMetadata"] = known
        return body


def _event(data: object) -> str:
    return event(data, end="\r\n")


def _part(part: Part, text: str) -> dict[str, Any]:
    if part.kind == "thinking":
        return {"text": text, "thought": True}
    if part.kind == "text":
        return {"text": text}
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = {}
    return {"functionCall": {"name": part.name, "args": arguments, "id": part.call_id}}


def _details(why: Refusal, retry_after_s: float | None) -> Iterator[dict[str, Any]]:
    kind = "type.googleapis.com/google.rpc."
    if why in _QUOTA_IDS:
        yield {"@type": f"{kind}QuotaFailure", "violations": [{"quotaId": _QUOTA_IDS[why]}]}
    if why is Refusal.INVALID_KEY:
        yield {
            "@type": f"{kind}ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
        }
    if retry_after_s is not None:
        yield {"@type": f"{kind}RetryInfo", "retryDelay": f"{retry_after_s:g}s"}


def _messages(content: Mapping[str, Any]) -> Iterator[Message]:
    role: Role = "assistant" if content.get("role") == "model" else "user"
    for part in content.get("parts") or ():
        if "functionResponse" in part:
            yield Message("tool", json.dumps(part["functionResponse"].get("response")))
        elif "functionCall" in part:
            call = part["functionCall"]
            yield Message(role, f"{call['name']}({json.dumps(call.get('args'))})")
        else:
            yield Message(role, part.get("text", "[data]"))
