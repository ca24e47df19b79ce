"""The bound of input tokens is never too low, and close once a provider has counted."""

from __future__ import annotations

import pytest

pytest.importorskip("pydantic_ai")

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from cleveragents.domain.errors import RequestError
from cleveragents.providers.model_access.line import Call, ModelLine
from cleveragents.providers.model_access.token_bound import digest_of, input_bound, stamp
from cleveragents.providers.model_access.weights import Weights
from cleveragents.testing import CallTool, ModelServer, Reply, Think
from modelkit import LOOK, PROTOCOLS, asking, call_to

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


def call_of(messages, **options):
    return Call(**{"model": "openai:x", "messages": messages, "tokens_max": 9, **options})


def answered(call, parts, **usage):
    """Return what the model said to a call, as the line returns it."""
    return stamp(ModelResponse(parts=parts, usage=RequestUsage(**usage)), digest_of(call))


def follow_up(call, response, result, instructions=None):
    request = ModelRequest(parts=[ToolReturnPart("look", result, "1")], instructions=instructions)
    return replace(call, messages=[*call.messages, response, request])


@given(system=texts, user=texts, result=texts, description=texts, key=texts)
def test_the_bound_is_never_below_the_bytes_of_everything_that_is_sent(
    system, user, result, description, key
):
    """No tokenizer makes more tokens than bytes."""
    tool = ToolDefinition(
        name="look", description=description, parameters_json_schema={"properties": {key: {}}}
    )
    messages = [
        *asking(user, instructions=system),
        ModelResponse(parts=[TextPart(user), ToolCallPart("look", {key: result}, "1")]),
        ModelRequest(parts=[ToolReturnPart("look", {key: result}, "1")]),
    ]
    sent = [system, user, user, description, *[key, result] * 2, key]
    size = sum(len(one.encode()) for one in sent)
    assert input_bound(call_of(messages, tools=(tool,))) >= size + 8 * len(messages)


@given(user=texts, said=texts, result=texts, counted=st.integers(0, 9_000))
def test_what_was_counted_replaces_the_bytes_of_all_that_came_before(user, said, result, counted):
    first = call_of(asking(user * 20))
    response = answered(first, [TextPart(said)], input_tokens=counted, output_tokens=5)
    bound = input_bound(follow_up(first, response, result))
    new = len(said.encode()) + len(result.encode())
    assert counted + new < bound < counted + 6 * new + 400


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_bound_holds_for_every_turn_that_a_server_counts(protocol):
    script = []
    text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200)
    reply = st.tuples(
        st.builds(Think, text), text, st.builds(lambda one: CallTool("look", {"thing": one}), text)
    )

    def answer(asked):
        return Reply(steps=script[asked.turns]) if asked.turns < len(script) else "done"

    @settings(max_examples=12)
    @given(replies=st.lists(reply, max_size=2), user=text, system=text, result=text)
    def holds(replies, user, system, result):
        script[:] = replies
        messages = asking(user, instructions=system)
        for _ in range(len(replies) + 1):
            call = call_to(server, protocol, messages=messages, tools=(LOOK,), tokens_max=10_000)
            bound = input_bound(call)
            answered = line.request(call)
            assert answered.usage.input_tokens <= bound
            results = [
                ToolReturnPart("look", result, one.tool_call_id)
                for one in answered.response.tool_calls
            ]
            again = ModelRequest(parts=results, instructions=system)
            messages = [*messages, answered.response, again]

    with ModelServer(answer) as server, ModelLine({}) as line:
        holds()


def test_the_bound_is_close_after_the_first_turn():
    """A long prompt costs its bytes once; then what the provider counted."""
    first = call_of(asking("word " * 8_000, instructions="Be brief. " * 500), tools=(LOOK,))
    assert input_bound(first) > 45_000
    call = ToolCallPart("look", '{"thing": "it"}', "1")
    response = answered(first, [call], input_tokens=10_000, output_tokens=20)
    second = follow_up(first, response, "found", instructions="Be brief. " * 500)
    assert 10_000 < input_bound(second) < 10_500


def test_a_count_survives_the_store():
    first = call_of(asking("word " * 8_000))
    response = answered(first, [TextPart("ok")], input_tokens=8_000, output_tokens=1)
    second = follow_up(first, response, "more")
    kept = ModelMessagesTypeAdapter.validate_json(
        ModelMessagesTypeAdapter.dump_json(list(second.messages))
    )
    assert input_bound(replace(second, messages=kept)) == input_bound(second) < 8_500


@pytest.mark.parametrize(
    "change",
    [
        lambda call: replace(call, model="openai:y"),
        lambda call: replace(call, base_url="http://localhost:1/v1"),
        lambda call: replace(call, tools=()),
        lambda call: replace(call, messages=[*asking("short"), *call.messages[1:]]),
        lambda call: replace(
            call, messages=[*call.messages[:-1], replace(call.messages[-1], instructions="new")]
        ),
        lambda call: replace(
            call,
            messages=[call.messages[0], replace(call.messages[1], metadata=None), call.messages[2]],
        ),
        lambda call: replace(
            call,
            messages=[
                call.messages[0],
                replace(call.messages[1], usage=RequestUsage(unmeasured_requests=1)),
                call.messages[2],
            ],
        ),
    ],
    ids=["model", "address", "tools", "messages", "instructions", "no-mark", "no-count"],
)
def test_a_count_that_was_made_for_another_question_is_not_used(change):
    first = call_of(asking("a question"), tools=(LOOK,))
    response = answered(first, [TextPart("ok")], input_tokens=1_000_000, output_tokens=1)
    second = follow_up(first, response, "more")
    assert input_bound(second) > 1_000_000
    assert input_bound(change(second)) < 10_000


def test_a_digest_stays_what_it_was_when_earlier_versions_stored_it():
    at = datetime(2026, 1, 2, tzinfo=UTC)
    messages = [
        ModelRequest(
            parts=[SystemPromptPart("Be brief", timestamp=at), UserPromptPart("hé", timestamp=at)],
            instructions="one",
            metadata={"a": 1},
        ),
        ModelResponse(
            parts=[TextPart("ok"), ToolCallPart("look", {"thing": "it"}, "1")],
            usage=RequestUsage(input_tokens=7),
            model_name="x",
            timestamp=at,
            provider_details={"b": 2},
            metadata={"c": 3},
        ),
        ModelRequest(
            parts=[ToolReturnPart("look", "found", "1", timestamp=at)], instructions="two"
        ),
    ]
    call = call_of(messages, base_url="http://localhost:1/v1")
    assert digest_of(call, 1) == "51f34ba75f328facf283a3ea73b464af5262c0c7a37322517669132dcf2852ba"
    assert digest_of(call) == "49943871844609e598028cdf80be82caec7048a4fdbf43801938d335d7cfe63f"


@given(
    instructions=st.lists(st.sampled_from([None, "", "one", "two"]), min_size=1, max_size=6),
    lengths=st.lists(st.integers(0, 6), max_size=5),
)
def test_a_digest_is_the_same_whatever_was_digested_before(instructions, lengths):
    messages = [asking("hi", instructions=told)[0] for told in instructions]
    call = call_of(messages, tools=(LOOK,))
    for until in lengths:
        anew = digest_of(replace(call, weights=Weights()), until)
        assert digest_of(call, until) == anew


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_message_in_the_place_of_one_that_was_digested_is_noticed(at):
    """Also one that looks like it: only the very same message is known."""
    call = call_of([*asking("one"), *asking("two"), *asking("three")])
    before = digest_of(call)
    swapped = [*call.messages[:at], *asking("other"), *call.messages[at + 1 :]]
    assert digest_of(replace(call, messages=swapped)) != before
    twins = [*call.messages[:at], replace(call.messages[at]), *call.messages[at + 1 :]]
    assert digest_of(replace(call, messages=twins)) == before
    assert digest_of(replace(call, messages=call.messages[:at] or swapped)) != before


def test_a_question_costs_a_look_at_what_is_new_in_it_however_long_the_conversation_is():
    class Counting(Weights):
        looks = 0

        def of_message(self, message):
            self.looks += 1
            return super().of_message(message)

    call = call_of(asking("hi"), tools=(LOOK,), weights=Counting())
    looks = []
    for _ in range(30):
        call.weights.looks = 0
        input_bound(call)
        response = answered(call, [TextPart("ok")], input_tokens=9, output_tokens=1)
        looks.append(call.weights.looks)
        call = follow_up(call, response, "more")
    # An answer and a question: once each for their size, and once for the digest.
    assert set(looks[1:]) == {4}


def test_reasoning_that_goes_back_counts_as_many_tokens_as_it_took():
    first = call_of(asking("hi"))
    plain = answered(first, [TextPart("ok")], input_tokens=100, output_tokens=5_000)
    thought = answered(
        first, [ThinkingPart(""), TextPart("ok")], input_tokens=100, output_tokens=5_000
    )
    assert input_bound(follow_up(first, plain, "")) < 1_000
    assert input_bound(follow_up(first, thought, "")) > 5_100


def test_media_cost_what_they_cost_at_most_and_not_their_bytes():
    picture = BinaryContent(data=b"x" * 1_000_000, media_type="image/png")

    def bound(item, model="anthropic:x"):
        return input_bound(
            call_of([ModelRequest(parts=[UserPromptPart(["see", item])])], model=model)
        )

    assert 5_000 < bound(picture) < 5_500
    assert 50_000 < bound(picture, "openai:x") < 50_500
    assert 5_000 < bound(ImageUrl("https://x.example/it.png")) < 5_500
    assert bound(DocumentUrl("https://x.example/it.pdf")) > 2_000_000
    assert bound(BinaryContent(data=b"x" * 3_000, media_type="text/plain")) > 4_000
    drawn = [*asking("draw"), ModelResponse(parts=[FilePart(picture)])]
    assert 5_000 < input_bound(call_of(drawn, model="anthropic:x")) < 5_500
    shown = [ModelRequest(parts=[ToolReturnPart("look", ["it", picture], "1")])]
    assert 5_000 < input_bound(call_of(shown, model="anthropic:x")) < 6_000


def test_the_window_of_a_model_bounds_every_call():
    assert input_bound(call_of(asking("x" * 9_000)), window=4_000) == 4_000
    assert input_bound(call_of(asking("x")), window=4_000) < 4_000


def test_text_that_cannot_be_sent_is_refused_with_the_way_out():
    with pytest.raises(RequestError) as refused:
        input_bound(call_of(asking("a\udc80")))
    assert refused.value.message == "A message must be text that UTF-8 can write"
