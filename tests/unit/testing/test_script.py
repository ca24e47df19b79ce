from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.errors import RequestError
from cleveragents.testing import (
    Asked,
    CallTool,
    Cut,
    Message,
    ModelServer,
    Refusal,
    Refuse,
    Reply,
    Say,
    ScriptedModel,
    Think,
    Wait,
    count_prompt,
    count_tokens,
)
from cleveragents.testing.answer import answer_to
from unit.testing.wire import ask

STEPS = st.lists(
    st.one_of(
        st.builds(Say, st.text(max_size=60)),
        st.builds(Think, st.text(max_size=60)),
        st.builds(CallTool, st.text(min_size=1, max_size=20), st.text(max_size=60)),
        st.builds(Wait, st.just(0.0)),
    ),
    max_size=6,
)


def asked_after(*said, max_tokens=None):
    messages = tuple(Message(role, text) for role, text in said)
    return Asked(
        number=1, protocol="anthropic", model="small", messages=messages, max_tokens=max_tokens
    )


def test_a_token_is_four_characters_begun():
    assert [count_tokens("x" * length) for length in (0, 1, 4, 5, 8)] == [0, 1, 1, 2, 2]


def test_a_prompt_has_overheads_for_itself_its_messages_and_its_tools():
    messages = (Message("user", "x" * 8), Message("tool", ""))
    assert count_prompt(messages, ()) == 3 + (4 + 2) + 4
    assert count_prompt((), ({"a": 1},)) == 3 + 8 + 2


@given(STEPS, st.one_of(st.none(), st.integers(0, 60)), st.integers(0, 70))
def test_counts_add_up_and_obey_the_limit(steps, limit, hidden):
    reply = Reply(steps=tuple(steps), reasoning_tokens=hidden, cache_write_tokens=99)
    asked = asked_after(("user", "Hello"), max_tokens=limit)
    answer = answer_to(asked, reply, tools=(), counts=frozenset({"cache_write_tokens"}))
    usage = answer.usage
    assert limit is None or usage.output_tokens <= limit
    assert usage.reasoning_tokens <= usage.output_tokens
    assert usage.cache_write_tokens == usage.input_tokens == 9
    assert usage == answer.charged_for(dict.fromkeys(answer.parts, 1))
    assert answer.charged_for({}).output_tokens == min(hidden, hidden if limit is None else limit)
    for part in answer.parts:
        assert "".join(part.pieces()) == part.text


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((Cut(), Say("more")), "`Cut` must be the last step"),
        ((Say("well"), Refuse(Refusal.QUOTA)), "`Refuse` must come before anything is said"),
    ],
)
def test_a_reply_that_makes_no_sense_is_refused(steps, message):
    with pytest.raises(RequestError, match=message):
        Reply(steps=steps)


def test_a_scripted_model_answers_by_how_often_it_has_spoken():
    model = ScriptedModel([CallTool("read"), "done"])
    assert model(asked_after(("user", "go"))) == CallTool("read")
    later = asked_after(
        ("user", "go"), ("assistant", "thought"), ("assistant", "read({})"), ("tool", "text")
    )
    assert model(later) == "done"
    assert model(later) == "done"


def test_conversations_are_told_apart_by_their_words():
    model = ScriptedModel({"login": ["fixed"], "docs": ["written"]})
    assert model(asked_after(("user", "write the docs"))) == "written"
    assert model(asked_after(("user", "fix the login"))) == "fixed"
    with pytest.raises(RequestError, match="the words of one script"):
        model(asked_after(("user", "rest")))


def test_a_conversation_that_outlives_its_script_is_refused():
    with pytest.raises(RequestError, match="has 1 replies, got a request for reply 2"):
        ScriptedModel(["done"])(asked_after(("user", "go"), ("assistant", "done"), ("user", "?")))


def test_a_scripted_model_is_a_script_for_the_server():
    with ModelServer(ScriptedModel([("Let me see", CallTool("read", {"path": "a"}))])) as server:
        content = ask(server, "anthropic").json["content"]
    assert [block["type"] for block in content] == ["text", "tool_use"]
