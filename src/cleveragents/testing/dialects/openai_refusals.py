"""Refusals as OpenAI words them, and as servers that speak like it do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cleveragents.testing.dialects.dialect import Refused, gateway_page, retry_headers
from cleveragents.testing.script import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

_BAD = "invalid_request_error"

#: Status, type, code, param and sentence, as OpenAI's chat completions send them.
_OPENAI: Mapping[Refusal, tuple[int, str | None, str | None, str | None, str]] = {
    Refusal.RATE_LIMIT: (
        429,
        "tokens",
        "rate_limit_exceeded",
        None,
        (
            "Rate limit reached for {model} on tokens per min (TPM): Limit 30000, Used 29000, "
            "Requested 2000. Please try again in 2s."
        ),
    ),
    Refusal.QUOTA: (
        429,
        "insufficient_quota",
        "insufficient_quota",
        None,
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    Refusal.OVERLOADED: (
        503,
        "service_unavailable_error",
        "server_is_overloaded",
        None,
        "Our servers are currently overloaded. Please try again later.",
    ),
    Refusal.SERVER_ERROR: (
        500,
        "server_error",
        None,
        None,
        "The server had an error while processing your request. Sorry about that!",
    ),
    Refusal.CONTEXT_LENGTH: (
        400,
        _BAD,
        "context_length_exceeded",
        "messages",
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted "
            "in 140000 tokens. Please reduce the length of the messages."
        ),
    ),
    Refusal.OUTPUT_LENGTH: (
        400,
        _BAD,
        "invalid_value",
        "max_tokens",
        (
            "max_tokens is too large: 90000. This model supports at most 16384 completion tokens, "
            "whereas you provided 90000."
        ),
    ),
    Refusal.CONTENT_FILTER: (
        400,
        _BAD,
        "invalid_prompt",
        None,
        (
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy. "
            "Please try again with a different prompt."
        ),
    ),
    Refusal.INVALID_KEY: (
        401,
        _BAD,
        "invalid_api_key",
        None,
        "Incorrect API key provided: loopback. You can find your API key in your account.",
    ),
    Refusal.FORBIDDEN: (
        403,
        "request_forbidden",
        "unsupported_country_region_territory",
        None,
        "Country, region, or territory not supported",
    ),
    Refusal.UNKNOWN_MODEL: (
        404,
        _BAD,
        "model_not_found",
        None,
        "The model `{model}` does not exist or you do not have access to it.",
    ),
    Refusal.BAD_REQUEST: (
        400,
        _BAD,
        "unsupported_value",
        "temperature",
        "Unsupported value: 'temperature' does not support 7 with this model.",
    ),
}

#: Status and body of vLLM, Ollama and OpenRouter: no codes, or codes that are numbers.
_COMPATIBLE: Mapping[Refusal, tuple[int, dict[str, Any]]] = {
    Refusal.RATE_LIMIT: (
        429,
        {"error": {"message": "Rate limit exceeded: free-models-per-min.", "code": 429}},
    ),
    Refusal.QUOTA: (
        402,
        {"error": {"message": "This request requires more credits.", "code": 402}},
    ),
    Refusal.OVERLOADED: (
        503,
        {"error": {"message": "No instances available", "code": 503}},
    ),
    Refusal.SERVER_ERROR: (
        502,
        {"error": {"message": "Provider returned error", "code": 502}},
    ),
    Refusal.CONTEXT_LENGTH: (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 8192 tokens. However, you "
            "requested 9000 tokens in the messages. Please reduce the length of the messages.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    Refusal.OUTPUT_LENGTH: (
        400,
        {
            "object": "error",
            "message": "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's "
            "maximum context length is 8192 tokens and your request has 100 input tokens "
            "(9000 > 8192 - 100).",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    Refusal.CONTENT_FILTER: (
        403,
        {
            "error": {
                "message": "Your chosen model requires moderation and your input was flagged",
                "code": 403,
                "metadata": {"reasons": ["violence"], "flagged_input": "…"},
            }
        },
    ),
    Refusal.INVALID_KEY: (401, {"error": "Unauthorized"}),
    Refusal.FORBIDDEN: (403, {"error": {"message": "Key limit exceeded", "code": 403}}),
    Refusal.UNKNOWN_MODEL: (
        404,
        {
            "error": {
                "message": "model '{model}' not found",
                "type": "not_found_error",
                "param": None,
                "code": None,
            }
        },
    ),
    Refusal.BAD_REQUEST: (
        400,
        {
            "object": "error",
            "message": "1 validation error: temperature must be non-negative, got -1.0.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
}


def openai_refused(why: Refusal, model: str, retry_after_s: float | None) -> Refused:
    """Return a refusal of OpenAI; two of them come from the gateway before it."""
    page = _page(why)
    if page is not None:
        return page
    status, kind, code, param, sentence = _OPENAI[why]
    error = {
        "message": sentence.format(model=model),
        "type": kind,
        "param": param,
        "code": code,
    }
    return Refused(status, {"error": error}, retry_headers(retry_after_s))


def compatible_refused(why: Refusal, model: str, retry_after_s: float | None) -> Refused:
    """Return a refusal of a server that speaks like OpenAI."""
    page = _page(why)
    if page is not None:
        return page
    status, body = _COMPATIBLE[why]
    if why is Refusal.UNKNOWN_MODEL:
        named = {**body["error"], "message": body["error"]["message"].format(model=model)}
        body = {"error": named}
    return Refused(status, body, retry_headers(retry_after_s))


def _page(why: Refusal) -> Refused | None:
    if why is Refusal.GATEWAY_TIMEOUT:
        return Refused(504, gateway_page(504, "Gateway Time-out"))
    if why is Refusal.TOO_LARGE:
        return Refused(413, gateway_page(413, "Request Entity Too Large"))
    return None
