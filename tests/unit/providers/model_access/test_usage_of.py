"""What a provider reports becomes our counts, exactly."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai.usage import RequestUsage

from cleveragents.domain.usage import Usage
from cleveragents.providers.model_access.billing import CallFailed
from cleveragents.providers.model_access.line import Call, ModelLine
from cleveragents.providers.model_access.usage_of import usage_of
from cleveragents.testing import ModelServer, Reply, Think
from modelkit import PROTOCOLS, asking, call_to, chunk, events, fixed


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_usage_is_what_the_server_bills(protocol):
    reply = Reply(
        steps=(Think("let me see"), "the answer is long enough to count"),
        cache_read_tokens=5,
        cache_write_tokens=4,
        cache_write_1h_tokens=3,
        reasoning_tokens=11,
    )
    with ModelServer([reply]) as server, ModelLine({}) as line:
        answer = line.request(call_to(server, protocol, "a question of some length, to be cached"))
        assert answer.usage == server.bills[0].usage
        assert answer.usage.cache_read_tokens == 5
        assert answer.usage.reasoning_tokens > 11 or protocol == "anthropic"


@pytest.mark.parametrize("protocol", [one for one in PROTOCOLS if one != "anthropic"])
def test_usage_that_is_not_told_is_unknown_and_not_zero(protocol):
    with ModelServer([Reply(steps=("hi",), usage_sent=None)]) as server, ModelLine({}) as line:
        assert line.request(call_to(server, protocol)).usage is None


@pytest.mark.parametrize(
    ("model", "usage", "expected"),
    [
        (
            "groq:openai/gpt-oss-120b",
            {
                "prompt_tokens": 20,
                "completion_tokens": 9,
                "total_tokens": 29,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 4},
            },
            Usage(input_tokens=20, output_tokens=9, cache_read_tokens=8, reasoning_tokens=4),
        ),
        (
            "mistral:mistral-large-latest",
            {"prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29},
            Usage(input_tokens=20, output_tokens=9),
        ),
    ],
    ids=["groq", "mistral"],
)
def test_usage_of_other_protocols_is_read_exactly(model, usage, expected):
    body = events(
        chunk({"role": "assistant", "content": "hi"}),
        chunk({"content": ""}, finish="stop", usage=usage),
    )
    with fixed(200, body, "text/event-stream") as server, ModelLine({}) as line:
        call = Call(model=model, messages=asking("hi"), tokens_max=50, base_url=server.url)
        assert line.request(call).usage == expected


def test_parts_that_a_server_reports_apart_from_their_whole_are_added():
    reported = RequestUsage(
        input_tokens=10, cache_read_tokens=30, output_tokens=2, output_reasoning_tokens=5
    )
    usage = usage_of(reported)
    assert (usage.input_tokens, usage.output_tokens) == (40, 7)


def test_what_stands_in_details_only_is_counted_and_null_is_nothing():
    reported = RequestUsage(
        output_tokens=9,
        audio_seconds=1.2,
        details={"reasoning_tokens": 4, "web_search_requests": 2, "citation_tokens": None},
    )
    assert usage_of(reported) == Usage(
        output_tokens=9, reasoning_tokens=4, web_searches=2, audio_seconds=2
    )


NO_COUNTS = [math.inf, math.nan, 10**400]


@pytest.mark.parametrize("told", NO_COUNTS, ids=["infinite", "no-number", "absurd"])
def test_usage_that_is_no_count_is_unknown(told):
    assert usage_of(RequestUsage(input_tokens=told, output_tokens=1)) is None
    details = {"reasoning_tokens": told}
    assert usage_of(RequestUsage(output_tokens=9, details=details)) is None


# Those who read it before us complain, and go on.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("told", NO_COUNTS, ids=["infinite", "no-number", "absurd"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "cut"])
def test_caller_hears_at_once_of_an_answer_whose_usage_is_no_count(told, whole):
    usage = {"prompt_tokens": told, "completion_tokens": 9, "total_tokens": 29}
    body = events(
        chunk({"role": "assistant", "content": "hi"}, usage=usage),
        *([chunk({"content": ""}, finish="stop")] if whole else []),
    )
    with fixed(200, body, "text/event-stream") as server, ModelLine({}) as line:
        call = Call(model="openai:x", messages=asking("hi"), tokens_max=50, base_url=server.url)
        if whole:
            assert line.request(call).usage is None
        else:
            with pytest.raises(CallFailed) as failed:
                line.request(call)
            assert (failed.value.usage_so_far, failed.value.billed) == (None, "unknown")
