"""Messages are weighed once, by what is sent of them."""

from __future__ import annotations

import pytest

pytest.importorskip("pydantic_ai")

from dataclasses import replace

from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from cleveragents.domain.errors import RequestError
from cleveragents.providers.model_access import weights as module
from cleveragents.providers.model_access.weights import Weights
from modelkit import LOOK, asking


def test_each_thing_is_written_once(monkeypatch):
    written = []
    monkeypatch.setattr(module, "_message_json", lambda one: written.append(one) or b"m")
    monkeypatch.setattr(module, "_tools_json", lambda one: written.append(one) or b"t")
    weights, (request,), tools = Weights(), asking("hi"), (LOOK,)
    for _ in range(3):
        assert weights.of_message(request).size_bytes == 1
        assert weights.of_tools(tools).size_bytes == 1
    assert written == [request, tools]


def test_message_that_looks_the_same_and_is_another_is_weighed_anew():
    weights, (request,) = Weights(), asking("hi")
    longer = replace(request, parts=[*request.parts, *request.parts])
    assert weights.of_message(longer).size_bytes > weights.of_message(request).size_bytes
    assert weights.of_message(longer).digest != weights.of_message(request).digest


def test_what_is_never_sent_weighs_nothing():
    (request,) = asking("hi")
    told = replace(request, instructions="x" * 1_000)
    assert Weights().of_message(told) == Weights().of_message(request)
    response = ModelResponse(parts=[TextPart("a")])
    marked = replace(
        response, usage=RequestUsage(input_tokens=7), metadata={"a": 1}, provider_details={"b": 2}
    )
    assert Weights().of_message(marked) == Weights().of_message(response)


def test_what_is_said_about_a_request_is_weighed_as_it_always_was():
    (request,) = asking("hi")
    marked = replace(request, metadata={"a": 1})
    assert Weights().of_message(marked) != Weights().of_message(request)


def test_weight_is_the_same_after_the_store():
    for message in (*asking("hi"), ModelResponse(parts=[TextPart("a")])):
        (kept,) = ModelMessagesTypeAdapter.validate_json(
            ModelMessagesTypeAdapter.dump_json([message])
        )
        assert Weights().of_message(kept) == Weights().of_message(message)


def test_text_that_cannot_be_sent_is_refused():
    with pytest.raises(RequestError, match="UTF-8"):
        Weights().of_message(ModelRequest(parts=asking("\udce9")[0].parts))
