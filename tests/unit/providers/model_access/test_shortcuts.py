"""Shortcuts save work, and change nothing of what is sent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import get_args

import pytest

pytest.importorskip("pydantic_ai")
pytest.importorskip("openai")

import openai
from pydantic import BaseModel
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer, OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition
from typing_extensions import get_type_hints, is_typeddict

from cleveragents.domain.error_record import ErrorCategory
from cleveragents.providers.model_access import adapters, shortcuts
from cleveragents.providers.model_access.line import ModelLine
from cleveragents.providers.model_access.shortcuts import is_plain, remember_tools, send_as_is
from cleveragents.testing import ModelServer
from modelkit import LOOK, PROTOCOLS, asking, call_to, chunk, events, fixed

PNG = b"\x89PNG\r\n\x1a\n\x00\xff"
DEEP = ToolDefinition(
    name="deep",
    description="Schémas 🌳 of every kind",
    parameters_json_schema={
        "type": "object",
        "title": "Deep",
        "properties": {
            "many": {"type": "array", "items": {"$ref": "#/$defs/one"}, "default": []},
            "either": {"anyOf": [{"type": "null"}, {"type": "number", "minimum": 0.5}]},
            "word": {"enum": ["a", "ü"], "default": "ü"},
            "sure": {"type": "boolean", "default": True},
        },
        "$defs": {"one": {"type": "object", "properties": {"n": {"type": "integer", "const": 1}}}},
        "required": ["many"],
        "additionalProperties": False,
    },
)
TOOLS = (LOOK, DEEP)


def request(*parts, **options):
    return ModelRequest(parts=list(parts), **options)


def answer(*parts, **options):
    return ModelResponse(parts=list(parts), **options)


def user(*content):
    return UserPromptPart(list(content))


CALLED = [
    request(UserPromptPart("look")),
    answer(
        TextPart("I will"),
        ToolCallPart("look", {"thing": "the sky é"}, "c1"),
        ToolCallPart("look", '{"thing": "\\u2028 \\"quoted\\""}', "c2"),
        ToolCallPart("deep", None, "c3"),
    ),
    request(
        ToolReturnPart("look", {"colour": "blue", "seen": [1, 2.5, None, True]}, "c1"),
        ToolReturnPart("look", "No such thing", "c2", outcome="failed"),
        ToolReturnPart("deep", "", "c3"),
        UserPromptPart("and now?"),
    ),
]
CONVERSATIONS = {
    "text": [request(UserPromptPart("hello"))],
    "system": [request(SystemPromptPart("be short"), UserPromptPart("hello"))],
    "instructions": [request(UserPromptPart("hello"), instructions="be kind")],
    "unicode": asking('é 漢字 🌳 \u2028 \x00 \\ " </s> \ud7ff'),
    "several parts": [request(user("first", "second"), UserPromptPart("third"))],
    "image": [request(user("what is it?", BinaryContent(PNG, media_type="image/png")))],
    "document": [request(user(BinaryContent(b"%PDF-1.4 \xff", media_type="application/pdf")))],
    "text file": [request(user(BinaryContent(b"a = 1\n", media_type="text/plain")))],
    "tools": CALLED,
    "tool with a picture": [
        *CALLED[:1],
        answer(ToolCallPart("look", {"thing": "it"}, "c1")),
        request(ToolReturnPart("look", ["a", BinaryContent(PNG, media_type="image/png")], "c1")),
    ],
    "a retry without a tool": [
        *asking("hello"),
        answer(TextPart("")),
        request(RetryFeedbackPart("Say something", retry=RetryInfo("no_output"))),
    ],
    "wrong arguments": [
        *CALLED[:1],
        answer(ToolCallPart("look", {"thing": 1}, "c1")),
        request(
            ToolReturnPart("look", [{"loc": ("thing",), "input": 1}], "c1", outcome="retried"),
            UserPromptPart("again"),
        ),
    ],
    "thoughts": [
        *asking("think"),
        answer(
            ThinkingPart("hm", id="r1", signature="c2ln", provider_name="openai"),
            ThinkingPart("ähm", signature="c2ln", provider_name="anthropic"),
            ThinkingPart("of nobody"),
            TextPart("thought", id="m1"),
            provider_name="openai",
        ),
        *asking("and?"),
    ],
    "long": [*CALLED, answer(TextPart("blue")), *CALLED, answer(TextPart("blue")), *asking("so?")],
}
LINK = [request(user("and this?", ImageUrl("https://example.com/a.png")))]
#: What else speaks OpenAI's protocol: other providers, and OpenAI itself by its own address.
OTHERS = {
    "ollama": "ollama:qwen3",
    "openrouter": "openrouter:x/y",
    "openai": "openai:gpt-5.2",
    "openai-responses": "openai-responses:gpt-5.2",
}
KEYS = {"OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k", "GROQ_API_KEY": "k"}


def line_to(server):
    return ModelLine({**KEYS, "OPENAI_BASE_URL": f"{server.openai_url}/"})


def of(server, protocol, **options):
    if protocol in OTHERS:
        url = None if protocol.startswith("openai") else server.openai_url
        return call_to(server, model=OTHERS[protocol], base_url=url, **options)
    return call_to(server, protocol, **options)


def heard(protocol, *, short):
    """Send all conversations; return the bodies and the headers that arrived."""
    with pytest.MonkeyPatch.context() as patched:
        if not short:
            patched.setattr(adapters, "send_as_is", lambda *_: None)
            patched.setattr(adapters, "remember_tools", lambda _: None)
        with ModelServer(lambda _: "fine") as server, line_to(server) as line:
            # What a link leads to is fetched for Google, and sent on.
            more = [] if protocol == "google" else [LINK]
            for messages in [*CONVERSATIONS.values(), *more]:
                line.request(of(server, protocol, messages=messages, tools=TOOLS))
            for tools in ((), TOOLS[::-1], TOOLS):
                line.request(of(server, protocol, messages=CALLED, tools=tools))
            return [(one.body, {**one.headers, "host": ""}) for one in server.asked]


@pytest.mark.parametrize("protocol", [*PROTOCOLS, *OTHERS])
def test_a_conversation_of_every_kind_is_sent_as_without_shortcuts(protocol):
    short, long = heard(protocol, short=True), heard(protocol, short=False)
    assert len(short) == len(long) > len(CONVERSATIONS)
    for ours, theirs in zip(short, long, strict=True):
        assert ours == theirs


def walked_by(monkeypatch, module):
    """Note the names of what an SDK walks along in each body."""
    bodies = []
    walk = module.async_maybe_transform

    async def noting(body, hints):
        left_out = {"Omit", "NotGiven"}
        bodies.append([name for name, one in body.items() if type(one).__name__ not in left_out])
        return await walk(body, hints)

    monkeypatch.setattr(module, "async_maybe_transform", noting)
    return bodies


@pytest.mark.parametrize(
    ("protocol", "place", "long"),
    [
        ("chat", "chat.completions.completions", "messages"),
        ("compatible", "chat.completions.completions", "messages"),
        ("ollama", "chat.completions.completions", "messages"),
        ("openrouter", "chat.completions.completions", "messages"),
        ("openai", "chat.completions.completions", "messages"),
        ("responses", "responses.responses", "input"),
        ("openai-responses", "responses.responses", "input"),
    ],
)
def test_the_sdk_walks_along_next_to_nothing(monkeypatch, protocol, place, long):
    """A client that is copied for a call would lose its shortcut, and nobody would notice."""
    walked = walked_by(monkeypatch, import_module(f"openai.resources.{place}"))
    with ModelServer(lambda _: "fine") as server, line_to(server) as line:
        for _ in range(2):
            line.request(of(server, protocol, messages=CALLED, tools=TOOLS))
        assert all(one.body[long] and one.body["tools"] for one in server.asked)
    assert walked == [["stream"]] * 2


def test_groq_gets_the_same_by_the_shortcut(monkeypatch):
    completions = pytest.importorskip("groq.resources.chat.completions")
    walked = walked_by(monkeypatch, completions)
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    stream = events(chunk({"content": "fine"}), chunk({}, finish="stop", usage=usage))

    def bodies():
        with fixed(200, stream, "text/event-stream") as server, ModelLine(KEYS) as line:
            options = {"model": "groq:llama-3.3-70b-versatile", "base_url": server.url}
            for messages in (CONVERSATIONS["image"], CALLED, CALLED):
                line.request(call_to(None, messages=messages, tools=TOOLS, **options))
            return [body for _, _, body in server.requests]

    short = bodies()
    assert walked == [["stream"]] * 3
    monkeypatch.setattr(adapters, "send_as_is", lambda *_: None)
    monkeypatch.setattr(adapters, "remember_tools", lambda _: None)
    assert bodies() == short


# -- the client ----------------------------------------------------------------------------


class Said(BaseModel):
    role: str
    content: str


HELLO = {"role": "user", "content": "hello"}


def body_of(given, *, short):
    async def send(url):
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            if short:
                send_as_is(client, "openai")
            await client.chat.completions.create(model="m", **given)

    with ModelServer(["fine"]) as server:
        asyncio.run(send(server.openai_url))
        return server.asked[0].body


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        (lambda: {"messages": [Said(role="user", content="é")]}, [{**HELLO, "content": "é"}]),
        (lambda: {"messages": iter([HELLO]), "tools": openai.omit}, [HELLO]),
        (lambda: {"messages": [{**HELLO, "name": openai.omit}], "tools": []}, [HELLO]),
        (lambda: {"messages": [HELLO], "extra_body": {"messages": [], "n": 1}}, []),
    ],
    ids=["a model", "an iterator", "not given", "a body of the caller's own"],
)
def test_what_is_not_plain_is_sent_as_the_sdk_would_send_it(given, messages):
    short = body_of(given(), short=True)
    assert short == body_of(given(), short=False)
    assert short["messages"] == messages


def test_a_body_that_is_no_mapping_is_left_to_the_sdk():
    """It refuses such a body, and says why."""
    with pytest.raises(TypeError) as plain:
        body_of({"messages": [HELLO], "extra_body": 5}, short=False)
    with pytest.raises(TypeError) as short:
        body_of({"messages": [HELLO], "extra_body": 5}, short=True)
    assert str(short.value) == str(plain.value)


@pytest.mark.parametrize(
    "resource",
    [
        None,
        SimpleNamespace(),
        SimpleNamespace(create=len),
        SimpleNamespace(create=lambda temperature=0: temperature),
    ],
    ids=["no resource", "no method", "no such parameter", "no way around"],
)
def test_a_client_that_lacks_something_stays_as_it_is(resource):
    client = SimpleNamespace(chat=SimpleNamespace(completions=resource))
    before = repr(client)
    send_as_is(client, "openai")
    assert repr(client) == before


@pytest.mark.parametrize(
    "value", [None, True, 1, 0.5, "é", [], {}, [[{"a": [1, {"b": None}]}]]], ids=repr
)
def test_what_json_knows_is_plain(value):
    assert is_plain(value)


@pytest.mark.parametrize(
    "value",
    [b"", (), {1}, openai.omit, Said(role="", content=""), ErrorCategory.CONNECT],
    ids=lambda value: type(value).__name__,
)
def test_all_else_is_not_plain_wherever_it_stands(value):
    assert not is_plain(value)
    assert not is_plain([0, {"a": ["b", value]}])


def hints_in(kind, seen):
    """Return all that the type hints of a body say beside types, at any depth."""
    found = list(getattr(kind, "__metadata__", ()))
    if is_typeddict(kind) and kind not in seen:
        seen.add(kind)
        parts = list(get_type_hints(kind, include_extras=True).values())
    else:
        parts = get_args(kind)
    for part in parts:
        found += hints_in(part, seen)
    return found


@pytest.mark.parametrize(
    ("module", "body"),
    [
        ("openai.types.chat.completion_create_params", "CompletionCreateParamsStreaming"),
        ("openai.types.responses.response_create_params", "ResponseCreateParamsStreaming"),
        ("groq.types.chat.completion_create_params", "CompletionCreateParams"),
    ],
    ids=["chat", "responses", "groq"],
)
def test_nothing_in_a_body_has_another_name_on_the_wire(module, body):
    """Such a name is the one thing that the walk would change in plain JSON."""
    seen = set()
    hints = hints_in(getattr(pytest.importorskip(module), body), seen)
    assert len(seen) > 20
    assert [hint for hint in hints if getattr(hint, "alias", None)] == []


# -- the tools -----------------------------------------------------------------------------


class Counting(OpenAIJsonSchemaTransformer):
    """Counts the schemas that it fits."""

    count = 0

    def walk(self):
        Counting.count += 1
        return super().walk()


@pytest.fixture
def model():
    Counting.count = 0
    profile = OpenAIModelProfile(json_schema_transformer=Counting)
    provider = OpenAIProvider(base_url="http://127.0.0.1:9", api_key="k")
    model = OpenAIChatModel("m", provider=provider, profile=profile)
    remember_tools(model)
    return model


def asked_with(*tools, **options):
    return ModelRequestParameters(function_tools=list(tools), **options)


def test_the_same_tools_are_fitted_once_and_as_before(model):
    first, second = (model.customize_request_parameters(asked_with(*TOOLS)) for _ in range(2))
    assert Counting.count == 2
    assert first == second == type(model).customize_request_parameters(model, asked_with(*TOOLS))


def test_what_else_is_asked_stays(model):
    model.customize_request_parameters(asked_with(LOOK))
    again = model.customize_request_parameters(asked_with(LOOK, thinking="high"))
    assert (again.thinking, len(again.function_tools)) == ("high", 1)


def test_equal_tools_are_other_tools(model):
    """In Python `True` equals `1`; a model would be told of the wrong one."""
    one, true = (replace(LOOK, parameters_json_schema={"default": it}) for it in (1, True))
    assert one == true
    fitted = [model.customize_request_parameters(asked_with(it)) for it in (one, true)]
    assert [it.function_tools[0].parameters_json_schema["default"] for it in fitted] == [1, True]
    assert fitted[1].function_tools[0].parameters_json_schema["default"] is True


def test_an_output_is_fitted_each_time(model):
    for _ in range(2):
        made = model.customize_request_parameters(asked_with(LOOK, output_tools=[DEEP]))
        assert len(made.output_tools) == 1
    assert Counting.count == 4


def test_the_oldest_tools_are_forgotten_first(model, monkeypatch):
    monkeypatch.setattr(shortcuts, "_TOOLS_MAX", 2)
    tools = [replace(LOOK, name=name) for name in "abc"]
    for one in (*tools, tools[2], tools[1]):
        model.customize_request_parameters(asked_with(one))
    assert Counting.count == 3
    model.customize_request_parameters(asked_with(tools[0]))
    assert Counting.count == 4


def test_a_model_that_does_more_than_to_fit_schemas_stays_as_it_is():
    class Own(OpenAIChatModel):
        def customize_request_parameters(self, model_request_parameters):
            return super().customize_request_parameters(model_request_parameters)

    model = Own("m", provider=OpenAIProvider(base_url="http://127.0.0.1:9", api_key="k"))
    remember_tools(model)
    assert "customize_request_parameters" not in vars(model)
