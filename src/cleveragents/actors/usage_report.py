"""What command-line agents tell about their own cost, in the forms that they are known to use.

Foreign output is read by shape and never trusted: what has no known shape tells nothing, counts
that cannot be are not counted, and nothing here raises.

| form | who prints it | how it adds up |
| --- | --- | --- |
| `total_cost_usd` beside `usage` | Claude Code, `json` and `stream-json` | the last one is all |
| `turn.completed` and `token_count` | Codex, `exec --json` | each counts from the start: the last |
| `stats.models.NAME.tokens` | Gemini CLI, `json` | one for each model, in the last document |
| `message.usage` with `message.id` | Claude Code that was stopped | one for each message |
| `usage` | any OpenAI-like or Anthropic-like answer | one for each document |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cleveragents.actors.json_value import parsed_json
from cleveragents.domain.errors import RequestError
from cleveragents.domain.money import Money
from cleveragents.domain.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Document: TypeAlias = Mapping[str, Any]

_MODEL_CHARS_MAX: Final = 200
_OBJECT_LINES: Final = re.compile(r"^[ \t]*\{.*$", re.MULTILINE)
#: More tokens than all models together have ever seen: not a count.
_COUNT_MAX: Final = 10**15


@dataclass(frozen=True, slots=True)
class Bill:
    """What one report says: its cost if it is stated, and what was used, of which model."""

    cost: Money | None = None
    usage: Usage | None = None
    model: str | None = None


def bills_in(printed: bytes) -> tuple[Bill, ...]:
    """Return what the output of an agent tells about its cost; nothing when it tells nothing."""
    documents = tuple(_documents(printed.decode("utf-8", "replace")))
    for read in _FORMS:
        bills = tuple(bill for bill in read(documents) if bill.cost or bill.usage)
        if bills:
            return bills
    return ()


def _documents(text: str) -> Iterator[Document]:
    """Yield the JSON objects of the text: the whole, the members of one list, or single lines."""
    whole = _parsed(text)
    found = whole if isinstance(whole, list) else [whole]
    if whole is None:
        found = [_parsed(line[0]) for line in _OBJECT_LINES.finditer(text)]
    yield from (one for one in found if isinstance(one, Mapping))


def _parsed(text: str) -> Any:
    try:
        return parsed_json(text)
    except ValueError:
        return None


# -- the forms -----------------------------------------------------------------------------


def _stated_total(documents: tuple[Document, ...]) -> Iterator[Bill]:
    for document in reversed(documents):
        cost = _money(document.get("total_cost_usd"))
        if cost is not None:
            models = _mapping(document, "modelUsage")
            model = _name(next(iter(models))) if len(models) == 1 else None
            yield Bill(cost, _usage(_mapping(document, "usage")), model)
            return


def _running_total(documents: tuple[Document, ...]) -> Iterator[Bill]:
    model = None
    found = None
    for document in documents:
        # Older versions put the event into `msg`, session files into `payload`.
        event = _mapping(document, "msg") or _mapping(document, "payload") or document
        model = _name(event.get("model")) or model
        usage = _usage(_running_counts(event))
        if usage is not None:
            found = usage
    if found is not None:
        yield Bill(None, found, model)


def _running_counts(event: Document) -> Document:
    kind = event.get("type")
    if kind == "turn.completed":
        return _mapping(event, "usage")
    if kind == "token_count":
        return _mapping(_mapping(event, "info"), "total_token_usage") or event
    return {}


def _by_model(documents: tuple[Document, ...]) -> Iterator[Bill]:
    for document in reversed(documents):
        models = _mapping(_mapping(document, "stats"), "models")
        bills = [
            Bill(None, usage, _name(name))
            for name in models
            if (usage := _usage(_mapping(_mapping(models, name), "tokens"))) is not None
        ]
        if bills:
            yield from bills
            return


def _by_message(documents: tuple[Document, ...]) -> Iterator[Bill]:
    bills: dict[str, Bill] = {}
    for document in documents:
        message = _mapping(document, "message")
        usage = _usage(_mapping(message, "usage"))
        if usage is not None:
            # Told once for each block of the message; the last time it is complete.
            key = _name(message.get("id")) or f"{len(bills)}"
            bills[key] = Bill(None, usage, _name(message.get("model")))
    yield from bills.values()


def _by_answer(documents: tuple[Document, ...]) -> Iterator[Bill]:
    for document in documents:
        told = _mapping(document, "usage")
        cost = _money(told.get("cost"))
        yield Bill(cost, _usage(told), _name(document.get("model")))


#: The first form that tells something is taken: the others tell the same again, or a part of it.
_FORMS: Final[tuple[Callable[[tuple[Document, ...]], Iterator[Bill]], ...]] = (
    _stated_total,
    _running_total,
    _by_model,
    _by_message,
    _by_answer,
)

# -- counts --------------------------------------------------------------------------------

#: Where each count of ours stands; several places add up. The key names the dialect's own mark.
_DIALECTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "prompt_tokens": {
        "input_tokens": ("prompt_tokens",),
        "output_tokens": ("completion_tokens",),
        "cache_read_tokens": ("prompt_tokens_details.cached_tokens",),
        "reasoning_tokens": ("completion_tokens_details.reasoning_tokens",),
    },
    # Anthropic tells cached tokens beside the input, all others as a part of it.
    "input_tokens": {
        "input_tokens": ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
        "output_tokens": ("output_tokens",),
        "cache_read_tokens": (
            "cache_read_input_tokens",
            "cached_input_tokens",
            "input_tokens_details.cached_tokens",
        ),
        "cache_write_tokens": ("cache_creation_input_tokens", "cache_write_input_tokens"),
        "cache_write_1h_tokens": ("cache_creation.ephemeral_1h_input_tokens",),
        "reasoning_tokens": (
            "reasoning_output_tokens",
            "output_tokens_details.reasoning_tokens",
        ),
        "web_searches": ("server_tool_use.web_search_requests",),
    },
    "prompt": {
        "input_tokens": ("prompt",),
        "output_tokens": ("candidates", "thoughts"),
        "cache_read_tokens": ("cached",),
        "reasoning_tokens": ("thoughts",),
    },
}


def _usage(told: Document) -> Usage | None:
    """Return the counts as ours, or None when there is none above 0."""
    for mark, places in _DIALECTS.items():
        if mark in told:
            counts = {name: _total(told, where) for name, where in places.items()}
            return _possible(counts) if any(counts.values()) else None
    return None


def _possible(counts: dict[str, int]) -> Usage:
    """Cut each part to what is left of its whole, or a price of the rest would be below 0."""
    read = min(counts.get("cache_read_tokens", 0), counts["input_tokens"])
    write = min(counts.get("cache_write_tokens", 0), counts["input_tokens"] - read)
    parts = {
        "cache_read_tokens": read,
        "cache_write_tokens": write,
        "cache_write_1h_tokens": min(counts.get("cache_write_1h_tokens", 0), write),
        "reasoning_tokens": min(counts["reasoning_tokens"], counts["output_tokens"]),
    }
    return Usage(**{**counts, **parts})


def _total(told: Document, places: Iterable[str]) -> int:
    return sum(_count(told, place) for place in places)


def _count(told: Document, place: str) -> int:
    *folders, name = place.split(".")
    for folder in folders:
        told = _mapping(told, folder)
    value = told.get(name)
    return value if type(value) is int and 0 <= value <= _COUNT_MAX else 0


def _mapping(document: Document, key: str) -> Document:
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}


def _name(value: object) -> str | None:
    if not isinstance(value, str) or not 0 < len(value) <= _MODEL_CHARS_MAX:
        return None
    return value if value.isprintable() and not value.isspace() else None


def _money(value: object) -> Money | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return Money.of(value)
    except RequestError:
        return None
