"""Every error of a provider, made by the loopback server and met through the real SDK.

docs/providers.md holds the table; each of its cells is a test here.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from cleveragents.application.services.error_classification import describe
from cleveragents.testing import (
    BreakOff,
    CallTool,
    Cut,
    Garble,
    ModelServer,
    Refusal,
    Refuse,
    Reply,
    Say,
    Wait,
    Withhold,
)

pytest.importorskip("pydantic_ai")

import httpx2
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

pytestmark = pytest.mark.long

DOCS = Path(__file__).parents[3] / "docs"
PROTOCOLS = ("openai-chat", "openai-responses", "openai-compatible", "anthropic", "google")
RETRY_AFTER_S = 7.0
SAID = Say("This much was said before.")

#: How each row of the table is made.
ROWS = {
    "rate limit": Refuse(Refusal.RATE_LIMIT, RETRY_AFTER_S),
    "quota or credit used up": Refuse(Refusal.QUOTA),
    "overloaded": Refuse(Refusal.OVERLOADED, RETRY_AFTER_S),
    "server error": Refuse(Refusal.SERVER_ERROR),
    "gateway gave up waiting": Refuse(Refusal.GATEWAY_TIMEOUT),
    "prompt too long": Refuse(Refusal.CONTEXT_LENGTH),
    "prompt and output too long together": Refuse(Refusal.OUTPUT_LENGTH),
    "more output asked for than the model has": Refuse(Refusal.OUTPUT_LENGTH),
    "request too large": Refuse(Refusal.TOO_LARGE),
    "prompt refused by a filter": Refuse(Refusal.CONTENT_FILTER),
    "key not valid": Refuse(Refusal.INVALID_KEY),
    "not allowed": Refuse(Refusal.FORBIDDEN),
    "model not known": Refuse(Refusal.UNKNOWN_MODEL),
    "request not valid": Refuse(Refusal.BAD_REQUEST),
    "overloaded, told inside the stream": (SAID, BreakOff(Refusal.OVERLOADED)),
    "server error, told inside the stream": (SAID, BreakOff(Refusal.SERVER_ERROR)),
    "rate limit, told inside the stream": (SAID, BreakOff(Refusal.RATE_LIMIT)),
    "nobody listens": None,
    "no answer in time": Wait(60),
    "connection lost before the answer": Cut(0),
    "connection lost inside the answer": (SAID, Cut(3)),
    "connection lost before the end of the answer": (SAID, Cut()),
    "answer is no JSON": (SAID, Garble()),
}
REFUSED_BEFORE_WORK = {name for name, reply in ROWS.items() if isinstance(reply, Refuse)}


def table(document, columns):
    """Read the rows of a document that have so many columns, without heads and rulers."""
    lines = (DOCS / document).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in rows if len(row) == columns and not row[1].startswith(("---", "Open"))]


DOCUMENTED = {row[0]: row[1:] for row in table("providers.md", 8)}
CASES = [
    pytest.param(name, protocol, stream, id=f"{name}-{protocol}-{'stream' if stream else 'whole'}")
    for name, cells in DOCUMENTED.items()
    for protocol, cell in zip(PROTOCOLS, cells, strict=False)
    if cell != "none"
    for stream in (False, True)
]


@pytest.fixture(scope="module")
def client():
    """One event loop and one HTTP client for all, because making one takes longer than a test."""
    with asyncio.Runner() as runner:
        http = httpx2.AsyncClient(timeout=60)
        yield runner, http
        runner.run(http.aclose())


def model_of(protocol, server, http):
    if protocol == "google":
        return GoogleModel(
            "gemini-2.5-pro",
            provider=GoogleProvider(api_key="loopback", base_url=server.url, http_client=http),
        )
    if protocol == "anthropic":
        anthropic = AsyncAnthropic(
            base_url=server.anthropic_url, api_key="loopback", max_retries=0, http_client=http
        )
        provider = AnthropicProvider(anthropic_client=anthropic)
        return AnthropicModel("claude-fable-5-1", provider=provider)
    url = server.compatible_url if protocol == "openai-compatible" else server.openai_url
    openai = AsyncOpenAI(base_url=url, api_key="loopback", max_retries=0, http_client=http)
    kind = OpenAIResponsesModel if protocol == "openai-responses" else OpenAIChatModel
    return kind("gpt-4.1", provider=OpenAIProvider(openai_client=openai))


async def answered(model, *, stream, timeout_s=10.0):
    messages = [ModelRequest(parts=[UserPromptPart("What is left to do?")])]
    settings = {"max_tokens": 50, "timeout": timeout_s}
    parameters = ModelRequestParameters()
    if not stream:
        return await model.request(messages, settings, parameters)
    async with model.request_stream(messages, settings, parameters) as response:
        async for _ in response:
            pass
        return response.get()


def failure(client, protocol, reply, *, stream):
    """Ask once; return the record of what was raised, and the server that was asked."""
    runner, http = client
    server = ModelServer(lambda _: reply)
    if reply is None:
        server.close()
    timeout_s = 0.05 if isinstance(reply, Wait) else 10.0
    with server, pytest.raises(Exception) as raised:  # noqa: PT011  # what it is, is the question
        runner.run(answered(model_of(protocol, server, http), stream=stream, timeout_s=timeout_s))
    return describe("p-1", raised.value, {}, at=0.0), server


@pytest.mark.parametrize(("name", "protocol", "stream"), CASES)
def test_an_error_of_a_provider_is_what_the_document_says(name, protocol, stream, client):
    cells = DOCUMENTED[name]
    record, server = failure(client, protocol, ROWS[name], stream=stream)
    status = "no status" if record.status is None else str(record.status)
    code = "" if record.provider_code is None else f" `{record.provider_code}`"
    assert f"`{record.category}`" == cells[5]
    assert status + code == cells[PROTOCOLS.index(protocol)]
    named = getattr(ROWS[name], "retry_after_s", None)
    assert record.retry_after_s == named
    assert record.sent is (None if name == "answer is no JSON" else name != "nobody listens")
    # Not one request more than was asked for: each could be billed.
    assert len(server.asked) == (name != "nobody listens")
    billed = name not in REFUSED_BEFORE_WORK | {"nobody listens"} and (
        stream or "inside the stream" not in name
    )
    assert [bill.whole for bill in server.bills] == [False] * billed


def test_the_document_has_a_row_for_every_error():
    assert set(DOCUMENTED) == set(ROWS)


def test_what_is_done_is_what_the_ladders_say():
    ladders = {row[0]: row[2] for row in table("recovery.md", 3)}
    assert {name: cells[6] for name, cells in DOCUMENTED.items()} == {
        name: ladders[cells[5]] for name, cells in DOCUMENTED.items()
    }


#: Answers with HTTP 200 that are none, and what the model classes make of them in each protocol.
NO_ERRORS = {
    "withheld by a filter": (SAID, Withhold()),
    "cut off at `max_tokens`": Say("x" * 1_000),
    "empty": Reply(),
    "arguments of a tool are no JSON": CallTool("read", '{"path": '),
    "stream ends without its last events": (SAID, Cut(clean=True)),
    "no usage": Reply(steps=(SAID,), usage_sent=None),
}
SEEN = {row[0]: row[1:] for row in table("providers.md", 6)}


def seen(response):
    usage = "" if response.usage.has_values() else ", no usage"
    state = "" if response.state == "complete" else f", {response.state}"
    return f"{response.finish_reason or 'no reason'}{state}{usage}"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", NO_ERRORS)
def test_an_answer_that_is_none_raises_nothing(name, protocol, client):
    """So whoever asked must look: the table says what there is to see."""
    runner, http = client
    reply = NO_ERRORS[name]
    cell = SEEN[name][PROTOCOLS.index(protocol)]
    with ModelServer(lambda _: reply) as server:
        model = model_of(protocol, server, http)
        if cell.startswith("raises"):
            with pytest.raises(Exception) as raised:  # noqa: PT011  # what it is, is the question
                runner.run(answered(model, stream=True))
            record = describe("p-1", raised.value, {}, at=0.0)
            assert cell == f"raises {record.exception_type}: {record.category}"
        else:
            assert seen(runner.run(answered(model, stream=True))) == cell


def test_the_document_has_a_row_for_every_answer_that_is_none():
    assert set(SEEN) == set(NO_ERRORS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_without_any_event_is_bad_output(protocol, client):
    record, _ = failure(client, protocol, Cut(0, clean=True), stream=True)
    assert record.category == "llm.bad_output"


def test_no_error_shows_the_key(client):
    for protocol in PROTOCOLS:
        record, _ = failure(client, protocol, Refuse(Refusal.INVALID_KEY), stream=False)
        assert not re.search(r"sk-\w+", record.message)
