"""Shortcuts past work that pydantic-ai and SDKs do anew for each request, and in vain.

One thread carries all calls: what a request costs there bounds how many actors can talk at once.
A shortcut stands in for one public method of one object. It sends the same, takes the long way
with all that it does not know, and is not taken where something is missing.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.models import ModelRequestParameters

__all__ = ["is_plain", "remember_tools", "send_as_is"]

#: Of providers whose SDK walks along a body: the resource that sends it.
_SENDERS: Final = {
    "groq": "chat.completions",
    "ollama": "chat.completions",
    "openai": "chat.completions",
    "openai-responses": "responses",
    "openrouter": "chat.completions",
}
#: What a sender is given and is no part of the body, or decides more than what stands there.
_NOT_OF_THE_BODY: Final = frozenset(
    {"stream", "extra_headers", "extra_query", "extra_body", "timeout"}
)
_ATOMS: Final = frozenset({str, int, float, bool, NoneType})
#: Of how many conversations a model remembers the tools: of as many as may go on at once.
_TOOLS_MAX: Final = 256


def send_as_is(client: Any, provider: str) -> None:
    """Have a client send as it is what is plain JSON already.

    The SDK walks along a body by its type hints: it drops what is not given, reads files, dumps
    models. In plain JSON it finds nothing to do, and takes longer than all the rest of a request.
    `extra_body` is its own way around: what stands there is laid over the body after the walk.
    """
    if provider not in _SENDERS:
        return
    try:
        resource = attrgetter(_SENDERS[provider])(client)
        parameters = inspect.signature(resource.create).parameters
        # Any that may be left out: its default is the SDK's word for what is not given.
        not_given = parameters["temperature"].default
    except (AttributeError, KeyError):
        return
    if "extra_body" in parameters:
        resource.create = _around_the_walk(resource.create, not_given)


def _around_the_walk(create: Callable[..., Any], not_given: object) -> Callable[..., Any]:
    async def shortened(**given: Any) -> Any:
        extra = given.get("extra_body") or {}
        if isinstance(extra, Mapping):
            plain = {
                name: value
                for name, value in given.items()
                if name not in _NOT_OF_THE_BODY and is_plain(value)
            }
            given |= dict.fromkeys(plain, not_given)
            given["extra_body"] = {**plain, **extra}
        return await create(**given)

    return shortened


def is_plain(value: Any) -> bool:
    """Say whether a value is made of nothing but what JSON knows."""
    kind = type(value)
    if kind in _ATOMS:
        return True
    if kind is dict:
        return all(map(is_plain, value.values()))
    return kind is list and all(map(is_plain, value))


def remember_tools(model: Any) -> None:
    """Have a model fit the schemas of the same tools once, not once for each request.

    The same are the same objects, which nobody changes: `1`, `1.0` and `True` are equal in
    Python, and not in JSON. A model that does more than to fit schemas does it each time.
    What is remembered belongs to the thread of the loop that the model is used in.
    """
    from pydantic_ai.models import Model

    if type(model).customize_request_parameters is not Model.customize_request_parameters:
        return
    fit: Callable[[ModelRequestParameters], ModelRequestParameters]
    fit = model.customize_request_parameters
    known: dict[tuple[int, ...], tuple[list[Any], list[Any]]] = {}

    def fitted(asked: ModelRequestParameters) -> ModelRequestParameters:
        if asked.output_tools or asked.output_object:
            return fit(asked)
        key = tuple(map(id, asked.function_tools))
        if key not in known:
            if len(known) == _TOOLS_MAX:
                del known[next(iter(known))]
            # The tools stay with it: another object can have their number only after them.
            known[key] = list(asked.function_tools), fit(asked).function_tools
        return replace(asked, function_tools=known[key][1])

    model.customize_request_parameters = fitted
