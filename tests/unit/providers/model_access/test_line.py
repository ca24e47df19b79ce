"""One line carries all calls: whole answers, prompt stops, honest failures."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelRequestTimeout,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelRequest, ToolReturnPart

from cleveragents.application.services.error_classification import classify
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.domain.usage import Usage
from cleveragents.providers.model_access import desk
from cleveragents.providers.model_access.access import access_to
from cleveragents.providers.model_access.line import Call, CallFailed, ModelLine
from cleveragents.testing import (
    BreakOff,
    CallTool,
    Cut,
    Garble,
    ModelServer,
    Refusal,
    Refuse,
    Reply,
    Wait,
    run_together,
)
from modelkit import LOOK, PROTOCOLS, asking, call_to, chunk, events, fixed

each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)
LONG = "One two three, four and five: the answer is long enough for several events."


@pytest.fixture
def line():
    with ModelLine({}) as line:
        yield line


def failure_of(line, call):
    with pytest.raises(CallFailed) as failed:
        line.request(call)
    assert failed.value.__cause__ is failed.value.error
    return failed.value


def outcome_of(line, call):
    try:
        return line.request(call), None
    except CallFailed as failed:
        return None, failed


@each_protocol
def test_an_answer_is_whole_and_its_text_is_told(line, protocol):
    heard = []
    with ModelServer([LONG]) as server:
        answer = line.request(call_to(server, protocol), on_text=heard.append)
    assert answer.response.text == "".join(heard) == LONG
    assert answer.response.finish_reason == "stop"


@each_protocol
def test_calls_of_tools_come_back_with_their_results(line, protocol):
    def script(asked):
        return "it is blue" if asked.turns else CallTool("look", {"thing": "the sky é"})

    with ModelServer(script) as server:
        first = call_to(server, protocol, tools=(LOOK,))
        asked = line.request(first).response
        (wanted,) = asked.tool_calls
        assert (wanted.tool_name, wanted.args_as_dict()) == ("look", {"thing": "the sky é"})
        result = ToolReturnPart("look", "blue", wanted.tool_call_id)
        messages = [*first.messages, asked, ModelRequest(parts=[result])]
        last = line.request(call_to(server, protocol, messages=messages, tools=(LOOK,)))
        assert server.asked[0].tools == ("look",)
        assert "blue" in server.asked[1].text
    assert last.response.text == "it is blue"


@each_protocol
def test_the_longest_answer_and_the_instructions_are_always_sent(line, protocol):
    with ModelServer([LONG]) as server:
        messages = asking("hello", instructions="Be brief")
        answer = line.request(call_to(server, protocol, messages=messages, tokens_max=16))
        assert server.asked[0].max_tokens == 16
        assert "Be brief" in server.asked[0].text
    assert answer.response.finish_reason == "length"


@pytest.mark.parametrize(
    ("model", "keys", "word"),
    [
        ("openai:x", {}, "max_tokens"),
        ("ollama:x", {}, "max_tokens"),
        ("openrouter:x/y", {}, "max_tokens"),
        ("openai:x", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "here"}, "max_completion_tokens"),
    ],
    ids=["compatible", "ollama", "openrouter", "openai"],
)
def test_each_server_is_told_the_longest_answer_in_the_word_that_it_knows(model, keys, word):
    """A server that ignores the word would answer, and charge, without a limit."""
    with ModelServer(["hi"]) as server:
        keys = {name: server.openai_url if key == "here" else key for name, key in keys.items()}
        with ModelLine(keys) as line:
            line.request(call_to(server, model=model, temperature=0.5))
        body = server.asked[0].body
    words = {"max_tokens", "max_completion_tokens"}
    assert {name: body[name] for name in words & set(body)} == {word: 500}
    assert body["temperature"] == 0.5
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("protocol", "variable", "header"),
    [
        ("chat", "OPENAI_API_KEY", "authorization"),
        ("responses", "OPENAI_API_KEY", "authorization"),
        ("anthropic", "ANTHROPIC_API_KEY", "authorization"),
        ("google", "GOOGLE_API_KEY", "x-goog-api-key"),
    ],
)
def test_a_key_is_sent_only_where_it_belongs(monkeypatch, protocol, variable, header):
    monkeypatch.setenv(variable, "secret-of-the-provider")
    monkeypatch.setenv("CLEVERAGENTS_KEY_127_0_0_1", "")
    with ModelServer(["hi", "hi"]) as server, ModelLine() as line:
        line.request(call_to(server, protocol))
        monkeypatch.setenv("CLEVERAGENTS_KEY_127_0_0_1", "secret-of-the-host")
        line.request(call_to(server, protocol))
        first, second = server.asked
    assert "secret" not in str(first.headers)
    assert second.headers[header].endswith("secret-of-the-host")


@each_protocol
def test_a_rate_limit_passes_through_unbilled_and_is_not_retried(line, protocol):
    with ModelServer([Refuse(Refusal.RATE_LIMIT, retry_after_s=7)]) as server:
        failed = failure_of(line, call_to(server, protocol))
        assert len(server.asked) == 1
    verdict = classify(failed, 0.0)
    assert verdict.category is ErrorCategory.RATE_LIMIT
    if protocol != "google":  # says it in the body, which classify reads in its own way
        assert failed.error.retry_after == 7
    assert (failed.billed, failed.usage_so_far) == ("no", None)


@each_protocol
@pytest.mark.parametrize(
    ("why", "billed"),
    [
        (Refusal.INVALID_KEY, "no"),
        (Refusal.UNKNOWN_MODEL, "no"),
        (Refusal.BAD_REQUEST, "no"),
        (Refusal.CONTEXT_LENGTH, "no"),
        (Refusal.QUOTA, "no"),
        (Refusal.SERVER_ERROR, "unknown"),
        (Refusal.GATEWAY_TIMEOUT, "unknown"),
    ],
)
def test_a_refusal_says_what_is_known_about_the_bill(line, protocol, why, billed):
    with ModelServer([Refuse(why)]) as server:
        failed = failure_of(line, call_to(server, protocol))
        assert len(server.asked) == 1
    assert (failed.billed, failed.usage_so_far) == (billed, None)


@each_protocol
def test_an_error_inside_the_stream_leaves_the_bill_unknown(line, protocol):
    with ModelServer([Reply(steps=(LONG, BreakOff()))]) as server:
        failed = failure_of(line, call_to(server, protocol))
    assert failed.billed == "unknown"


@each_protocol
def test_what_cannot_be_read_leaves_the_bill_unknown(line, protocol):
    with ModelServer([Reply(steps=(LONG, Garble()))]) as server:
        failed = failure_of(line, call_to(server, protocol))
    assert failed.billed == "unknown"


@each_protocol
@pytest.mark.parametrize("clean", [False, True], ids=["broken", "clean"])
def test_an_answer_cut_at_any_event_is_whole_or_a_failure(line, protocol, clean):
    """Never half an answer; and a whole one is not thrown away because its farewell is missing."""
    lost = (ModelConnectionError, UnexpectedModelBehavior)  # the latter if nothing came at all
    whole = 0
    with ModelServer(
        lambda asked: Reply(steps=(LONG, Cut(int(asked.text), clean=clean)))
    ) as server:
        for events_sent in range(40):
            call = call_to(server, protocol, str(events_sent))
            answer, failed = outcome_of(line, call)
            if answer is None:
                assert failed.billed == "unknown", events_sent
                assert isinstance(failed.error, lost), events_sent
                assert not whole, events_sent
            else:
                assert answer.response.text == LONG
                assert answer.usage is None or answer.usage == server.bills[-1].usage
                whole += 1
            if whole > 3:
                break
    assert whole


@each_protocol
def test_a_call_that_takes_too_long_is_ended_and_its_connection_closed(line, protocol):
    with ModelServer([Reply(steps=("begun", Wait(30), "late"))]) as server:
        failed = failure_of(line, call_to(server, protocol, timeout_s=0.3))
        server.wait_for(bills=1)
        assert not server.bills[0].whole
    assert isinstance(failed.error, ModelRequestTimeout)
    assert failed.billed == "unknown"


def test_a_whole_answer_is_not_thrown_away_because_the_time_ends_before_its_farewell(line):
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    told = events(chunk({"content": "fine"}), chunk({}, finish="stop", usage=usage))
    with fixed(200, told.replace("data: [DONE]\n\n", ""), "text/event-stream", more=9) as server:
        call = call_to(None, model="openai:it", base_url=server.url, timeout_s=0.5)
        answer = line.request(call)
    assert answer.response.text == "fine"
    assert answer.usage == Usage(input_tokens=3, output_tokens=1)


@each_protocol
def test_a_stop_ends_the_call_at_once_and_closes_its_connection(line, protocol):
    """The best of three, because the machine may be busy with others."""
    took = []
    with ModelServer(lambda _: Reply(steps=(LONG, Wait(30), "late"))) as server:
        for number in range(1, 4):
            stop = StopSignal()
            begun = threading.Event()

            def ask(stop=stop, begun=begun):
                with pytest.raises(Stopped, match="enough"):
                    line.request(
                        call_to(server, protocol), stop=stop, on_text=lambda _: begun.set()
                    )
                return time.perf_counter()

            def end(stop=stop, begun=begun):
                assert begun.wait(30)
                at = time.perf_counter()
                stop.stop("enough")
                return at

            left, stopped = run_together([ask, end])
            took.append(left - stopped)
            server.wait_for(bills=number)
        assert not any(bill.whole for bill in server.bills)
    assert min(took) < 0.1


def test_a_stop_that_came_before_sends_nothing(line):
    stop = StopSignal()
    stop.stop("never mind")
    with ModelServer([]) as server, pytest.raises(Stopped, match="never mind"):
        line.request(call_to(server), stop=stop)
    assert server.asked == ()


def test_a_stop_is_not_held_up_by_text_that_was_not_heard_yet(line):
    stop = StopSignal()
    heard = []

    def listen(text):
        heard.append(text)
        server.wait_for(bills=1)  # by now all text has come
        stop.stop("enough")

    with ModelServer([Reply(steps=(LONG, Cut()))]) as server, pytest.raises(Stopped):
        line.request(call_to(server), stop=stop, on_text=listen)
    assert len(heard) == 1


def test_a_signal_that_did_not_stop_keeps_no_listener(line):
    stop = StopSignal()
    with ModelServer(["hi"]) as server:
        line.request(call_to(server), stop=stop)
    assert stop._listeners == {}


def test_a_listener_is_called_in_the_callers_thread_and_may_raise(line):
    threads = []

    def listen(_):
        threads.append(threading.current_thread())
        raise LookupError("no place to write")

    with ModelServer([Reply(steps=(LONG, Wait(30)))]) as server:
        with pytest.raises(LookupError):
            line.request(call_to(server), on_text=listen)
        server.wait_for(bills=1)  # the connection is closed: the server waits no longer
    assert threads == [threading.current_thread()]


@pytest.mark.parametrize(
    "model",
    [
        "anthropic:claude-sonnet-5-5",
        "google:gemini-3.5-flash",
        "groq:llama-3.3-70b-versatile",
        "mistral:mistral-large-latest",
        "openai:gpt-5.2",
        "openai-responses:gpt-5.2",
    ],
)
def test_a_server_that_is_not_there_bills_nothing(line, model):
    with ModelServer([]) as server:
        gone = server.url
    call = Call(model=model, messages=asking("hi"), tokens_max=9, base_url=gone)
    failed = failure_of(line, call)
    assert failed.billed == "no"
    assert classify(failed, 0.0).category is ErrorCategory.CONNECT


@pytest.mark.parametrize("model", ["groq:llama-3.3-70b-versatile", "mistral:mistral-large-latest"])
def test_other_sdks_answer_and_do_not_retry(line, model):
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    body = events(chunk({"content": "hi"}), chunk({"content": ""}, finish="stop", usage=usage))
    heard = []
    with fixed(200, body, "text/event-stream") as server:
        call = Call(model=model, messages=asking("hi"), tokens_max=9, base_url=server.url)
        assert line.request(call, on_text=heard.append).response.text == "".join(heard) == "hi"
    with fixed(500, "{}") as server:
        call = Call(model=model, messages=asking("hi"), tokens_max=9, base_url=server.url)
        assert failure_of(line, call).billed == "unknown"
        assert len(server.requests) == 1


def test_bedrock_tries_once(monkeypatch, line):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with fixed(500, "{}") as server:
        model = "bedrock:us.amazon.nova-pro-v1:0"
        call = Call(model=model, messages=asking("hi"), tokens_max=9, base_url=server.url)
        assert failure_of(line, call).billed == "unknown"
        assert len(server.requests) == 1


def test_bedrock_without_a_region_is_told_what_to_set(monkeypatch, tmp_path, line):
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    call = Call(model="bedrock:us.amazon.nova-pro-v1:0", messages=asking("hi"), tokens_max=9)
    for _ in range(2):  # a model that could not be opened is opened anew
        with pytest.raises(SetupError) as refused:
            line.request(call)
        assert (refused.value.code, refused.value.facts["variable"]) == (
            "CA1002",
            "AWS_DEFAULT_REGION",
        )


def test_check_refuses_what_cannot_be_asked_and_starts_nothing():
    line = ModelLine({"OPENAI_API_KEY": "k"})
    line.check("openai:gpt-5.2")
    with pytest.raises(SetupError) as refused:
        line.check("anthropic:claude-sonnet-5-5")
    assert refused.value.hint == "Set `ANTHROPIC_API_KEY` in the environment"
    line.check("anthropic:claude-sonnet-5-5", "http://localhost:1/")
    assert line._desk is None
    line.close()


def test_closing_ends_the_calls_that_run_with_stopped(line):
    def ask(server):
        with pytest.raises(Stopped, match="the line to the models was closed"):
            line.request(call_to(server))

    def close(server):
        server.wait_for(asked=8)
        line.close()

    with ModelServer(lambda _: Wait(30)) as server:
        run_together([*[partial(ask, server)] * 8, partial(close, server)])
        server.wait_for(bills=8)
    assert not line._desk._thread.is_alive()


def test_a_closed_line_takes_no_calls_and_closes_again_in_peace(line):
    with ModelServer(["hi"]) as server:
        call = call_to(server)
        line.request(call)
        line.close()
        line.close()
        with pytest.raises(RequestError) as refused:
            line.request(call)
    assert refused.value.code == "CA6101"


def test_a_stop_after_the_line_was_closed_is_harmless():
    ticket = desk.Ticket(
        call_to(None, base_url=None), access_to("ollama:x", None, {}), "", tells=False
    )
    one = desk.Desk()
    one.close()
    one.cancel(ticket, "too late")
    with pytest.raises(Stopped, match="too late"):
        ticket.wait(None)


def test_a_caller_does_not_wait_for_ever_for_a_loop_that_hangs(monkeypatch):
    monkeypatch.setattr(desk, "_GRACE_S", 0.0)
    call = call_to(None, base_url=None, timeout_s=0.01)
    ticket = desk.Ticket(call, access_to("ollama:x", None, {}), "", tells=False)
    with pytest.raises(CallFailed) as failed:
        ticket.wait(None)
    assert isinstance(failed.value.error, TimeoutError)
    assert failed.value.billed == "unknown"


def test_calls_to_several_models_share_one_thread(line):
    with ModelServer(lambda asked: asked.model) as server:
        for protocol in PROTOCOLS:
            line.request(call_to(server, protocol))
        names = [one.name for one in threading.enumerate() if one.name == "ca-models"]
    assert names == ["ca-models"]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"tokens_max": 0}, "`tokens_max` must be a whole number from 1, got 0"),
        ({"timeout_s": 0}, "`timeout_s` must be more than 0 seconds, got 0"),
        ({"timeout_s": float("inf")}, "`timeout_s` must be more than 0 seconds, got inf"),
        ({"messages": []}, "`messages` must hold at least one message, got none"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused_at_birth(options, rule):
    with pytest.raises(RequestError) as refused:
        call_to(None, base_url=None, **options)
    assert refused.value.message == rule


def test_pieces_of_text_that_come_at_once_wake_the_caller_once(line, monkeypatch):
    monkeypatch.setattr(desk, "_TELL_S", 60.0)
    heard = []
    with ModelServer([LONG]) as server:
        line.request(call_to(server), on_text=heard.append)
    assert heard == [LONG]
