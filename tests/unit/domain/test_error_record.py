from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.error_record import (
    MESSAGE_CHARS_MAX,
    Action,
    Decision,
    ErrorCategory,
    ErrorRecord,
    SideEffects,
    gate_key,
    is_seconds,
)
from cleveragents.domain.errors import RequestError

SECRET = "sk-ant-api03-" + "Ab3" * 12
RECORD = ErrorRecord(
    plan_id="p-1",
    seq=3,
    id="r-1",
    at=12.5,
    category=ErrorCategory.LOOP,
    underlying=ErrorCategory.TOOL_ARGS,
    message="wrong path",
    node="build",
    attempt=2,
    provider="openai",
    model="small",
    status=400,
    retry_after_s=1.5,
    sent=True,
    side_effects=SideEffects.PARTIAL,
    idempotent=False,
)


def test_a_record_survives_pickling_and_json():
    assert pickle.loads(pickle.dumps(RECORD)) == RECORD
    assert ErrorRecord.from_dict(json.loads(json.dumps(RECORD.to_dict()))) == RECORD
    plain = ErrorRecord(plan_id="p-1")
    assert ErrorRecord.from_dict(plain.to_dict()) == plain


def test_a_record_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        RECORD.message = "other"


@given(
    st.sampled_from([f.name for f in fields(ErrorRecord) if "str" in str(f.type)]).filter(
        lambda name: name != "plan_id"
    ),
    st.text(max_size=20),
)
def test_a_secret_survives_in_no_field(name, around):
    record = ErrorRecord(plan_id="p-1", **{name: f"{around} {SECRET} {around}"})
    assert SECRET not in json.dumps(record.to_dict())
    assert SECRET not in repr(record)
    assert SECRET.encode() not in pickle.dumps(record)


def test_a_long_message_is_bounded():
    record = ErrorRecord(plan_id="p-1", message="x" * 10_000, node="n" * 10_000)
    assert len(record.message) == MESSAGE_CHARS_MAX
    assert record.node is not None
    assert len(record.node) == 200


@pytest.mark.parametrize("plan_id", ["", "  ", None, 7])
def test_a_record_without_a_plan_is_refused(plan_id):
    with pytest.raises(RequestError, match="A plan id must be"):
        ErrorRecord(plan_id=plan_id)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("category", value) for value in ("nonsense", None, 7)),
        ("underlying", "nonsense"),
        ("side_effects", "some"),
        *(("message", value) for value in (None, b"text")),
        *(("node", value) for value in (0, b"n")),
        *(("seq", value) for value in ("1", -1, True)),
        *(("attempt", value) for value in (1.0, -1)),
        *(("status", value) for value in ("429", True)),
        *(("at", value) for value in (None, "now", float("nan"))),
        *(("retry_after_s", value) for value in (-1.0, float("inf"), "5")),
        *(("sent", value) for value in (0, "no")),
        ("idempotent", 1),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_at_birth(name, value):
    with pytest.raises(RequestError) as caught:
        ErrorRecord(**{"plan_id": "p", name: value})
    assert caught.value.message.startswith(f"`{name}` must be ")
    assert f"got {value!r}" in caught.value.message
    assert caught.value.hint


def test_the_texts_of_categories_become_categories():
    record = ErrorRecord(plan_id="p", category="llm.loop", underlying="tool.args")
    assert record.category is ErrorCategory.LOOP
    assert record.underlying is ErrorCategory.TOOL_ARGS
    assert ErrorRecord(plan_id="p", side_effects="partial").side_effects is SideEffects.PARTIAL


@pytest.mark.parametrize("code", ["CA3107", "CA3108", "CA3109"])
def test_a_refusal_of_our_own_is_news_about_no_gate(code):
    refusal = ErrorRecord(plan_id="p", provider="openai", model="small", provider_code=code)
    assert refusal.gate_key is None
    assert refusal.provider == "openai"


def test_numbering_keeps_everything_else():
    numbered = RECORD.numbered(9)
    assert numbered.seq == 9
    assert numbered.numbered(3) == RECORD
    assert RECORD.seq == 3


def test_a_loop_says_what_it_is_a_loop_of():
    loop = ErrorRecord(plan_id="p", category=ErrorCategory.BAD_OUTPUT).numbered(3, loop=True)
    assert (loop.category, loop.underlying) == (ErrorCategory.LOOP, ErrorCategory.BAD_OUTPUT)


def test_rungs_rise_from_retry_to_abort():
    ladder = [Action.RETRY, Action.FEEDBACK, Action.FALL_BACK, Action.REPLAN, Action.ASK]
    rungs = [action.rung for action in [*ladder, Action.ABORT]]
    assert rungs == sorted(set(rungs))
    assert Action.SHRINK.rung == Action.FEEDBACK.rung
    assert Action.SKIP.rung == 0


def test_a_decision_is_plain_json():
    decision = Decision(action=Action.RETRY, reason="because", delay_s=1.0)
    assert json.loads(json.dumps(decision.to_dict()))["action"] == "retry"


def test_gate_keys_name_provider_and_model():
    assert gate_key("openai", "small") == RECORD.gate_key == "openai:small"
    assert gate_key("openai") == "openai"
    assert gate_key(None, "small") is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, True),
        (1.5, True),
        (-1, False),
        (float("inf"), False),
        (True, False),
        ("1", False),
        (10**400, False),
    ],
)
def test_seconds_are_finite_numbers_from_zero(value, expected):
    assert is_seconds(value) is expected
