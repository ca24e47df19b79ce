from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.actors.usage_report import Bill, bills_in
from cleveragents.domain.money import Money
from cleveragents.domain.usage import PART_OF, Usage


def report(*documents, noise=""):
    return "\n".join([noise, *map(json.dumps, documents)]).encode()


def test_total_cost_outranks_the_messages_that_it_sums_up():
    """`stream-json` tells the usage of each message, and then the total once more."""
    message = {"message": {"id": "m", "model": "claude", "usage": {"input_tokens": 7}}}
    total = {"type": "result", "total_cost_usd": 0.5, "usage": {"input_tokens": 7}}
    assert bills_in(report(message, total)) == (Bill(Money.of(0.5), Usage(input_tokens=7)),)


def test_last_total_cost_is_all():
    bills = bills_in(report({"total_cost_usd": 0.5}, {"total_cost_usd": 0.75}))
    assert bills == (Bill(Money.of(0.75)),)


def test_list_of_events_is_read_as_its_members():
    printed = json.dumps([{"type": "system"}, {"total_cost_usd": 1}]).encode()
    assert bills_in(printed) == (Bill(Money.of(1)),)


def test_report_on_the_last_line_is_found_behind_other_output():
    printed = report({"total_cost_usd": 1}, noise="Working…\n{broken\n[1]\nnull")
    assert bills_in(printed) == (Bill(Money.of(1)),)


def test_several_models_leave_the_model_open():
    printed = report({"total_cost_usd": 1, "modelUsage": {"a": {}, "b": {}}})
    assert bills_in(printed)[0].model is None


def test_messages_of_a_stopped_agent_count_once_each():
    def told(key, output, model="claude"):
        usage = {"input_tokens": 2, "cache_creation_input_tokens": 8, "output_tokens": output}
        return {"type": "assistant", "message": {"id": key, "model": model, "usage": usage}}

    bills = bills_in(report(told("a", 1), told("a", 5), told("b", 3), told(None, 1, None)))
    assert [(bill.usage.output_tokens, bill.model) for bill in bills] == [
        (5, "claude"),
        (3, "claude"),
        (1, None),
    ]
    assert bills[0].usage.input_tokens == 10
    assert bills[0].usage.cache_write_tokens == 8


def test_codex_turns_count_from_the_start_so_the_last_is_all():
    def turn(tokens):
        usage = {
            "input_tokens": tokens,
            "cached_input_tokens": tokens // 2,
            "output_tokens": 9,
            "reasoning_output_tokens": 4,
        }
        return {"type": "turn.completed", "usage": usage}

    (bill,) = bills_in(report({"type": "thread.started"}, turn(100), turn(300)))
    assert bill == Bill(
        None,
        Usage(input_tokens=300, cache_read_tokens=150, output_tokens=9, reasoning_tokens=4),
    )


@pytest.mark.parametrize("wrapping", ["msg", "payload"])
def test_older_codex_counts_are_found_in_their_wrapping(wrapping):
    info = {"total_token_usage": {"input_tokens": 5, "output_tokens": 1}}
    (bill,) = bills_in(
        report(
            {wrapping: {"type": "session", "model": "gpt-5"}},
            {wrapping: {"type": "token_count", "info": info}},
            {wrapping: {"type": "token_count", "info": None}},
        )
    )
    assert bill == Bill(None, Usage(input_tokens=5, output_tokens=1), "gpt-5")


def test_oldest_codex_counts_stand_in_the_event():
    (bill,) = bills_in(report({"msg": {"type": "token_count", "input_tokens": 5}}))
    assert bill.usage == Usage(input_tokens=5)


def test_gemini_tells_each_model():
    tokens = {"prompt": 100, "candidates": 20, "cached": 60, "thoughts": 30, "tool": 0}
    stats = {"models": {"pro": {"tokens": tokens}, "flash": {"tokens": {"prompt": 1}}, "no": {}}}
    assert bills_in(report({"response": "hi", "stats": stats})) == (
        Bill(
            None,
            Usage(input_tokens=100, output_tokens=50, cache_read_tokens=60, reasoning_tokens=30),
            "pro",
        ),
        Bill(None, Usage(input_tokens=1), "flash"),
    )


OPENAI = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
RESPONSES = {
    "input_tokens": 100,
    "output_tokens": 20,
    "input_tokens_details": {"cached_tokens": 40},
    "output_tokens_details": {"reasoning_tokens": 5},
}


@pytest.mark.parametrize("usage", [OPENAI, RESPONSES], ids=["chat", "responses"])
def test_answers_of_a_provider_count_one_by_one(usage):
    expected = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=40, reasoning_tokens=5)
    documents = [{"model": "gpt", "usage": usage}, {"model": "gpt", "usage": usage}]
    assert bills_in(report(*documents)) == (Bill(None, expected, "gpt"),) * 2


def test_anthropic_tells_cached_tokens_beside_the_input():
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 50,
        "cache_creation": {"ephemeral_1h_input_tokens": 30, "ephemeral_5m_input_tokens": 20},
        "output_tokens": 3,
        "server_tool_use": {"web_search_requests": 2},
    }
    (bill,) = bills_in(report({"usage": usage}))
    assert bill.usage == Usage(
        input_tokens=160,
        output_tokens=3,
        cache_read_tokens=100,
        cache_write_tokens=50,
        cache_write_1h_tokens=30,
        web_searches=2,
    )


def test_cost_of_one_answer_is_taken_where_it_is_stated():
    (bill,) = bills_in(report({"usage": {"prompt_tokens": 1, "cost": 0.25}}))
    assert bill == Bill(Money.of(0.25), Usage(input_tokens=1))


@pytest.mark.parametrize(
    "printed",
    [
        b"",
        b"all good\n",
        b"null",
        b"[1, 2]",
        b'{"usage": null}',
        b'{"usage": {"input_tokens": -1}}',
        b'{"usage": {"input_tokens": true, "output_tokens": 1.5}}',
        b'{"usage": {"input_tokens": 1e999}}',
        b'{"total_cost_usd": NaN}',
        b'{"total_cost_usd": true}',
        b'{"total_cost_usd": -1}',
        b'{"total_cost_usd": "1"}',
        b'{"stats": {"models": {"a": []}}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"total_cost_usd": 1' + b"0" * 5000 + b"}",
        b"\xff\xfe",
    ],
)
def test_output_that_tells_nothing_costs_nothing_known(printed):
    assert bills_in(printed) == ()


NAMES = st.sampled_from(
    [
        "usage",
        "total_cost_usd",
        "modelUsage",
        "model",
        "message",
        "id",
        "type",
        "msg",
        "info",
        "payload",
        "stats",
        "models",
        "tokens",
        "total_token_usage",
        "input_tokens",
        "output_tokens",
        "cached_input_tokens",
        "prompt_tokens",
        "cost",
        "prompt",
        "prompt_tokens_details",
        "cached_tokens",
        "cache_read_input_tokens",
        "candidates",
        "thoughts",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 10**30)
    | st.floats()
    | st.sampled_from(["turn.completed", "token_count", "claude", ""])
    | st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=30,
)


@given(st.lists(VALUES, max_size=4), st.binary(max_size=20))
def test_no_foreign_output_ever_raises(documents, noise):
    printed = b"\n".join([noise, *(json.dumps(one).encode() for one in documents)])
    for bill in (*bills_in(printed), *bills_in(json.dumps(documents).encode())):
        assert bill.cost is None or bill.cost >= Money(0)
        if bill.usage is not None:
            for part, wholes in PART_OF.items():
                for whole in wholes:
                    assert getattr(bill.usage, part) <= getattr(bill.usage, whole)


@given(st.binary(max_size=200))
def test_no_foreign_bytes_ever_raise(printed):
    assert isinstance(bills_in(printed), tuple)
