"""The provider on loopback: what it understands, sends, bills, and how it ends."""

from __future__ import annotations

import http.client
import json
import threading

import pytest

from cleveragents.domain.errors import InternalError, RequestError
from cleveragents.domain.usage import Usage
from cleveragents.testing import (
    BreakOff,
    CallTool,
    Cut,
    Garble,
    Gate,
    ModelServer,
    Refusal,
    Refuse,
    Reply,
    Say,
    Think,
    Wait,
    Withhold,
    model_server,
)
from unit.testing.wire import (
    PATHS,
    PROTOCOLS,
    STREAM_PATHS,
    ask,
    body_of,
    connect,
    receive,
    send,
    usage_in,
)

TEXT = "An answer of some length, so that it comes in pieces."
EVERYTHING = Reply(
    steps=(Think("Hm."), Say(TEXT), CallTool("read", {"path": "a"}), CallTool("ls", {})),
    cache_read_tokens=3,
    cache_write_tokens=4,
    cache_write_1h_tokens=1,
    reasoning_tokens=5,
)

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def serving(reply):
    return ModelServer(lambda _: reply)


@every_protocol
@both_ways
def test_the_bill_is_the_usage_that_the_client_was_told(protocol, stream):
    with serving(EVERYTHING) as server:
        got = ask(server, protocol, stream=stream)
        (bill,) = server.bills
    assert got.status == 200
    assert bill.raw == usage_in(protocol, got, stream=stream)
    assert (bill.number, bill.model, bill.protocol, bill.whole) == (1, "small", protocol, True)
    # 3 for the prompt, 4 for its message, 2 for its text
    assert bill.usage.input_tokens == 9
    shown = 1 + 14 + 5 + 1
    assert bill.usage.output_tokens == 5 + shown
    assert bill.usage.reasoning_tokens == 5 + 1
    assert bill.usage.cache_read_tokens == 3
    assert bill.usage.cache_write_tokens == (0 if protocol == "google" else 4)
    assert bill.usage.cache_write_1h_tokens == (1 if protocol == "anthropic" else 0)


@every_protocol
@both_ways
def test_an_answer_never_has_more_tokens_than_it_may(protocol, stream):
    with serving((Say("x" * 30), CallTool("read", {"path": "y" * 50}))) as server:
        for limit in (1, 7, 8, 9, 10, 12, 25, 26, 1_000):
            ask(server, protocol, stream=stream, max_tokens=limit)
        used = [bill.usage.output_tokens for bill in server.bills]
    # 8 for the text; a call is named whole or not at all; the whole takes 25
    assert used == [1, 7, 8, 8, 10, 12, 25, 25, 25]


def test_the_end_tells_of_the_limit_in_the_words_of_each_protocol():
    finishes = {}
    with serving("x" * 100) as server:
        for protocol in PROTOCOLS:
            got = ask(server, protocol, max_tokens=5).json
            finishes[protocol] = (
                got["candidates"][0]["finishReason"]
                if protocol == "google"
                else got.get("stop_reason")
                or got.get("incomplete_details")
                or got["choices"][0]["finish_reason"]
            )
    assert finishes == {
        "openai-chat": "length",
        "openai-compatible": "length",
        "openai-responses": {"reason": "max_output_tokens"},
        "anthropic": "max_tokens",
        "google": "MAX_TOKENS",
    }


def test_without_a_limit_everything_is_said_and_hidden_reasoning_counts():
    body = body_of("openai-chat")
    del body["max_tokens"]
    with serving(Reply(steps=(TEXT,), reasoning_tokens=100)) as server:
        ask(server, "openai-chat", body)
        ask(server, "openai-chat", max_tokens=60)
        assert server.asked[0].max_tokens is None
        assert [bill.usage.output_tokens for bill in server.bills] == [114, 60]


def test_openai_chat_streams_as_openai_does():
    with serving((Think("Hm."), Say("Hi"), CallTool("ls", {}))) as server:
        got = ask(server, "openai-chat", stream=True)
    assert got.headers["content-type"].startswith("text/event-stream")
    *chunks, usage, done = [data for _, data in got.events]
    assert done == "[DONE]"
    assert usage["choices"] == []
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    call = {"id": "call_1_0", "type": "function", "function": {"name": "ls", "arguments": ""}}
    assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
    assert {"tool_calls": [{"index": 0, **call}]} in deltas
    assert "".join(delta.get("content") or "" for delta in deltas) == "Hi"
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "Hm."
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_openai_chat_sends_no_usage_in_a_stream_that_did_not_ask_for_it():
    body = body_of("openai-chat", stream=True)
    del body["stream_options"]
    with serving("Hi") as server:
        got = ask(server, "openai-chat", body, stream=True)
    assert not any(data.get("usage") for _, data in got.events[:-1])


def test_anthropic_streams_as_anthropic_does():
    with serving((Think("Hm."), Say("Hi"), CallTool("ls", {}))) as server:
        got = ask(server, "anthropic", stream=True)
    assert all(name == data["type"] for name, data in got.events)
    kinds = [name for name, _ in got.events]
    assert kinds[:2] == ["message_start", "ping"]
    assert kinds[-2:] == ["message_delta", "message_stop"]
    deltas = [data["delta"]["type"] for name, data in got.events if name == "content_block_delta"]
    assert list(dict.fromkeys(deltas)) == [
        "thinking_delta",
        "signature_delta",
        "text_delta",
        "input_json_delta",
    ]


def test_openai_responses_number_their_events():
    with serving(EVERYTHING) as server:
        got = ask(server, "openai-responses", stream=True)
    numbers = [data["sequence_number"] for _, data in got.events]
    assert numbers == sorted(set(numbers))
    assert got.events[-1][0] == "response.completed"
    items = [data["item"] for name, data in got.events if name == "response.output_item.done"]
    assert items == got.events[-1][1]["response"]["output"]


@every_protocol
def test_the_stream_says_what_the_whole_answer_says(protocol):
    with serving(Say(TEXT)) as server:
        whole, stream = ask(server, protocol), ask(server, protocol, stream=True)
    pieces = {
        "anthropic": lambda data: data.get("delta", {}).get("text", ""),
        "openai-responses": lambda data: data.get("delta", ""),
        "google": lambda data: data["candidates"][0]["content"]["parts"][0]["text"],
    }.get(
        protocol,
        lambda data: data["choices"][0]["delta"].get("content", "") if data["choices"] else "",
    )
    said = [pieces(data) for _, data in stream.events if isinstance(data, dict)]
    assert "".join(said) == TEXT
    assert len([piece for piece in said if piece]) > 1
    assert json.dumps(TEXT) in whole.text


@every_protocol
def test_arguments_that_are_no_json_are_sent_as_the_protocol_can(protocol):
    with serving(CallTool("read", '{"path": ')) as server:
        text = ask(server, protocol).text
    assert ("path" in text) is protocol.startswith("openai")


@every_protocol
def test_an_empty_answer_is_whole_and_billed(protocol):
    with serving(Reply()) as server:
        assert ask(server, protocol).status == 200
        assert ask(server, protocol, stream=True).status == 200
        assert [bill.usage.output_tokens for bill in server.bills] == [0, 0]


@every_protocol
@both_ways
def test_a_filter_ends_the_answer_with_http_200(protocol, stream):
    with serving(("Well", Withhold())) as server:
        got = ask(server, protocol, stream=stream)
    assert got.status == 200
    assert any(word in got.text for word in ("content_filter", "refusal", "SAFETY"))


@pytest.mark.parametrize("protocol", PROTOCOLS[:-1])
@pytest.mark.parametrize("why", Refusal, ids=str)
def test_a_refusal_is_an_error_without_a_bill(protocol, why):
    with serving(Refuse(why, retry_after_s=2.5)) as server:
        got = ask(server, protocol)
        assert (got.status >= 400, server.bills) == (True, ())
    page = got.headers["content-type"] == "text/html"
    assert page or got.headers["retry-after"] == "2.5"


def test_google_names_the_time_to_come_back_in_its_details():
    with serving(Refuse(Refusal.RATE_LIMIT, retry_after_s=2.5)) as server:
        details = ask(server, "google").json["error"]["details"]
    assert details[-1]["retryDelay"] == "2.5s"


def test_google_names_the_reason_of_a_key_in_its_details():
    with serving(Refuse(Refusal.INVALID_KEY)) as server:
        assert ask(server, "google").json["error"]["details"][0]["reason"] == "API_KEY_INVALID"


def test_google_has_no_error_for_a_filter():
    with pytest.raises(RequestError, match="Google"), serving(Refuse(Refusal.CONTENT_FILTER)) as s:
        ask(s, "google")


def test_a_refusal_may_have_another_status():
    with serving(Refuse(Refusal.OVERLOADED, status=418)) as server:
        assert ask(server, "anthropic").status == 418


@every_protocol
def test_an_error_inside_a_stream_comes_after_what_was_said(protocol):
    with serving(("Well", BreakOff(Refusal.RATE_LIMIT))) as server:
        got = ask(server, protocol, stream=True)
        (bill,) = server.bills
    assert got.status == 200
    last = got.events[-1][1]
    assert "error" in last or last["response"]["error"]["code"] == "rate_limit_exceeded"
    assert (bill.whole, bill.usage.output_tokens, bill.raw) == (False, 1, None)


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses"])
def test_a_gateways_page_can_break_off_a_stream(protocol):
    with serving(BreakOff(Refusal.GATEWAY_TIMEOUT)) as server:
        assert "Gateway" in ask(server, protocol, stream=True).text


def test_without_a_stream_breaking_off_is_refusing():
    with serving(("Well", BreakOff())) as server:
        assert ask(server, "anthropic").status == 529
        assert server.bills == ()


@every_protocol
def test_garble_is_no_json_and_billed(protocol):
    with serving(("Well", Garble())) as server:
        with pytest.raises(json.JSONDecodeError):
            ask(server, protocol).json  # noqa: B018  # read, to see that it cannot be
        with pytest.raises(json.JSONDecodeError):
            ask(server, protocol, stream=True).events  # noqa: B018  # as above
        assert [bill.whole for bill in server.bills] == [False, False]


@every_protocol
def test_a_cut_leaves_the_client_without_the_rest(protocol):
    with serving((Say(TEXT), Cut())) as server:
        for stream in (False, True):
            with pytest.raises(http.client.IncompleteRead):
                ask(server, protocol, stream=stream)
        assert [bill.usage.output_tokens for bill in server.bills] == [14, 14]
        assert [bill.whole for bill in server.bills] == [False, False]


@both_ways
def test_a_cut_after_no_event_sends_nothing(stream):
    with serving(Cut(0)) as server:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, "anthropic", stream=stream)
        assert [bill.usage.output_tokens for bill in server.bills] == [0]


def test_a_cut_inside_the_answer_is_charged_for_what_was_sent():
    # 1 opening event, then 8 pieces of 16 tokens
    with serving((Say("x" * 64), Cut(5))) as server:
        with pytest.raises(http.client.IncompleteRead):
            ask(server, "openai-chat", stream=True)
        assert [bill.usage.output_tokens for bill in server.bills] == [8]


def test_a_cut_may_come_after_everything_was_said():
    with serving((Say("Hi"), Cut(1_000, clean=True))) as server:
        got = ask(server, "anthropic", stream=True)
        assert got.events[-1][0] == "message_stop"
        assert [bill.whole for bill in server.bills] == [False]


@pytest.mark.parametrize("events", [0, 2, None])
def test_a_clean_cut_ends_the_body_and_not_the_answer(events):
    with serving((Say(TEXT), Cut(events, clean=True))) as server:
        got = ask(server, "openai-chat", stream=True)
        assert "[DONE]" not in got.text
        assert [bill.whole for bill in server.bills] == [False]


@every_protocol
@both_ways
def test_usage_may_be_wrong_and_the_bill_is_right(protocol, stream):
    wrong = Usage(input_tokens=1_000_000, output_tokens=7)
    with serving(Reply(steps=("Hi",), usage_sent=wrong)) as server:
        told = usage_in(protocol, ask(server, protocol, stream=stream), stream=stream)
        (bill,) = server.bills
    assert bill.raw == told
    assert 1_000_000 in told.values()
    assert bill.usage.output_tokens == 1


@every_protocol
@both_ways
def test_usage_may_be_missing(protocol, stream):
    with serving(Reply(steps=("Hi",), usage_sent=None)) as server:
        text = ask(server, protocol, stream=stream).text
        (bill,) = server.bills
    assert '"input_tokens":' not in text
    assert '"prompt_tokens":' not in text
    assert '"promptTokenCount":' not in text
    assert (bill.raw, bill.whole, bill.usage.output_tokens) == (None, True, 1)


def test_a_request_is_understood_in_every_protocol():
    schema = {"type": "object"}
    requests = {
        "openai-chat": {
            "model": "small",
            "max_completion_tokens": 9,
            "messages": [
                {"role": "developer", "content": "Be brief"},
                {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image"}]},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"function": {"name": "ls", "arguments": '{"a": 1}'}}],
                },
                {"role": "tool", "content": "a.py"},
            ],
            "tools": [{"type": "function", "function": {"name": "ls", "parameters": schema}}],
        },
        "openai-responses": {
            "model": "small",
            "max_output_tokens": 9,
            "instructions": "Be brief",
            "input": [
                {"role": "user", "content": [{"text": "Look"}, {"type": "image"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "name": "ls", "arguments": '{"a": 1}'},
                {"type": "function_call_output", "output": "a.py"},
            ],
            "tools": [{"type": "function", "name": "ls"}, {"type": "web_search"}],
        },
        "anthropic": {
            "model": "small",
            "max_tokens": 9,
            "system": [{"type": "text", "text": "Be brief"}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look\n[image]"}]},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "name": "ls", "input": {"a": 1}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "content": "a.py"}]},
            ],
            "tools": [{"name": "ls", "input_schema": schema}],
        },
        "google": {
            "generationConfig": {"maxOutputTokens": 9},
            "systemInstruction": {"parts": [{"text": "Be brief"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Look\n[image]"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {"a": 1}}}]},
                {"role": "user", "parts": [{"functionResponse": {"response": "a.py"}}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "ls"}]}, {"googleSearch": {}}],
        },
    }
    with serving("Hi") as server:
        for protocol, body in requests.items():
            ask(server, protocol, body)
        for asked in server.asked:
            said = [(message.role, message.text.strip('"')) for message in asked.messages]
            assert [one for one in said if one[1]] == [
                ("system", "Be brief"),
                ("user", "Look\n[image]"),
                ("assistant", 'ls({"a": 1})'),
                ("tool", "a.py"),
            ]
            assert (asked.model, asked.tools, asked.max_tokens) == ("small", ("ls",), 9)
            assert (asked.turns, asked.stream, asked.headers["x-test"]) == (1, False, "yes")
            assert "a.py" in asked.text
        assert [asked.number for asked in server.asked] == [1, 2, 3, 4]


def test_plain_texts_and_thoughts_are_understood():
    openai = {"messages": [{"role": "user", "content": {"odd": 1}}], "model": "small"}
    anthropic = {
        "model": "small",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "Look"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}]},
            {"role": "user", "content": [{"type": "image"}]},
        ],
    }
    google = {"contents": [{"parts": [{"inlineData": {}}]}]}
    with serving("Hi") as server:
        ask(server, "openai-chat", openai)
        ask(server, "anthropic", anthropic)
        ask(server, "google", google)
        texts = [[message.text for message in asked.messages] for asked in server.asked]
    assert texts == [['{"odd": 1}'], ["Look", "Hm", "[image]"], ["[data]"]]


def test_replies_of_a_list_come_in_the_order_of_arrival():
    with ModelServer(["one", Say("two")]) as server:
        texts = [ask(server, "anthropic").json["content"][0]["text"] for _ in range(2)]
    assert texts == ["one", "two"]


def test_each_model_may_have_its_list_and_the_others_one():
    with ModelServer({"small": ["small"], "": ["other"]}) as server:
        for model in ("large", "small"):
            body = {**body_of("anthropic"), "model": model}
            assert ask(server, "anthropic", body).json["content"][0]["text"] in {"small", "other"}
        assert [asked.model for asked in server.asked] == ["large", "small"]


@pytest.mark.parametrize("script", [[], {"large": ["x"]}], ids=["list", "models"])
def test_a_script_that_is_used_up_fails_the_test(script):
    server = ModelServer(script)
    assert ask(server, "anthropic").status == 500
    for _ in range(2):
        with pytest.raises(RequestError, match="a reply for every request"):
            server.close()


def test_the_fault_of_a_script_is_told_beside_what_the_test_met():
    def broken(_):
        raise ZeroDivisionError

    with pytest.raises(AssertionError) as met, ModelServer(broken) as server:
        assert ask(server, "anthropic").status == 200
    assert "ZeroDivisionError" in met.value.__notes__[0]


def test_what_is_no_request_is_a_fault():
    with pytest.raises(KeyError), serving("Hi") as server:
        assert ask(server, "openai-chat", {"model": "small"}).status == 500


def test_nobody_answers_elsewhere():
    with serving("Hi") as server:
        connection = connect(server)
        send(connection, "/v2/messages", b"{}")
        assert receive(connection).status == 404
        connection.close()
        assert server.asked == ()


def test_a_connection_serves_many_requests():
    with ModelServer(["one", "two"]) as server:
        connection = connect(server)
        for _ in range(2):
            send(connection, PATHS["anthropic"], body_of("anthropic"))
            assert receive(connection).status == 200
        connection.close()


@both_ways
def test_a_client_that_leaves_is_noticed_and_charged_for_the_prompt(stream):
    with serving((Wait(60), Say(TEXT))) as server:
        connection = connect(server)
        paths = STREAM_PATHS if stream else PATHS
        send(connection, paths["anthropic"], body_of("anthropic", stream=stream))
        server.wait_for(asked=1)
        connection.close()
        server.wait_for(bills=1)
        (bill,) = server.bills
    assert (bill.whole, bill.usage.input_tokens, bill.usage.output_tokens) == (False, 9, 0)


def test_a_client_that_dies_while_it_asks_is_no_fault_of_the_script():
    with serving("Hi") as server:
        connection = connect(server)
        connection.putrequest("POST", PATHS["anthropic"])
        connection.putheader("Content-Length", "100")
        connection.endheaders(b'{"model": ')
        connection.close()
        # The next connection is answered, and `close` waits for the first.
        assert ask(server, "anthropic").status == 200
    assert len(server.asked) == 1


def test_a_refusal_that_comes_late_finds_nobody():
    with serving((Wait(60), Refuse(Refusal.OVERLOADED))) as server:
        connection = connect(server)
        send(connection, PATHS["anthropic"], body_of("anthropic"))
        server.wait_for(asked=1)
        connection.close()
    assert server.bills == ()


@both_ways
def test_a_short_wait_only_delays(stream):
    with serving((Wait(0.001), Say("Hi"), Wait(0.001), Say("you"))) as server:
        assert ask(server, "anthropic", stream=stream).status == 200
        assert [bill.whole for bill in server.bills] == [True]


def test_close_ends_waits_connections_and_threads():
    before = set(threading.enumerate())
    server = serving(("Well", Wait(60)))
    idle = connect(server)
    idle.connect()
    waiting = connect(server)
    send(waiting, STREAM_PATHS["anthropic"], body_of("anthropic", stream=True))
    # Its head comes with the first event; the wait comes after that.
    response = waiting.getresponse()
    server.close()
    assert set(threading.enumerate()) <= before
    assert [bill.whole for bill in server.bills] == [False]
    with response, pytest.raises(http.client.IncompleteRead):
        response.read()
    with pytest.raises(ConnectionError):
        ask(server, "anthropic")
    idle.close()
    waiting.close()


def test_close_says_when_a_script_hangs(monkeypatch):
    monkeypatch.setattr(model_server, "_JOIN_S", 0.01)
    gate = Gate()

    def hang(_):
        gate.pass_through()
        return "Hi"

    server = ModelServer(hang)
    connection = connect(server)
    send(connection, PATHS["anthropic"], body_of("anthropic"))
    gate.wait_for(1)
    with pytest.raises(InternalError, match="did not end"):
        server.close()
    gate.open()
    connection.close()


def test_waiting_for_what_does_not_come_ends():
    with serving("Hi") as server, pytest.raises(TimeoutError, match="1 requests and 0 bills"):
        server.wait_for(asked=1, timeout_s=0.01)


def test_addresses_are_those_that_the_clients_want():
    with serving("Hi") as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert server.openai_url == f"{server.url}/v1"
        assert server.compatible_url == f"{server.url}/compatible/v1"
        assert server.anthropic_url == server.url
