"""From a reply of the script to the answer that is sent: cut at `max_tokens`, and counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Literal, TypeAlias

from cleveragents.domain.usage import Usage
from cleveragents.testing.billing import CHARS_PER_TOKEN, count_prompt, count_tokens
from cleveragents.testing.script import (
    BreakOff,
    CallTool,
    Cut,
    Garble,
    Refuse,
    Say,
    Think,
    Wait,
    Withhold,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction
    from typing import Any

    from cleveragents.testing.script import Asked, Reply, Step

Kind: TypeAlias = Literal["text", "thinking", "call"]
Finish: TypeAlias = Literal["stop", "length", "calls", "filter"]

_PIECES_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of content: `text` is what is said or thought, or the arguments of a call."""

    kind: Kind
    text: str
    #: Its place among the parts of the answer, and among its calls.
    index: int = 0
    call_index: int = 0
    name: str = ""
    call_id: str = ""

    @property
    def tokens(self) -> int:
        """How many tokens it took."""
        return count_tokens(self.name + self.text)

    def pieces(self) -> Iterator[str]:
        """Split the text as a stream would, into a few pieces."""
        size = max(1, -(-len(self.text) // _PIECES_MAX))
        for start in range(0, len(self.text), size):
            yield self.text[start : start + size]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that will be sent for one request."""

    asked: Asked
    flow: tuple[Part | Wait, ...]
    ending: Refuse | BreakOff | Cut | Garble | None
    finish: Finish
    #: What is charged if everything is sent.
    usage: Usage
    #: What the client is told, or None.
    told: Usage | None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content, without the waits."""
        return tuple(one for one in self.flow if isinstance(one, Part))

    @property
    def name(self) -> str:
        """A name that no other answer of this server has."""
        return f"{self.asked.number:012d}"

    def charged_for(self, sent: Mapping[Part, Fraction]) -> Usage:
        """Return what is charged when only these shares of the parts were generated."""
        tokens = {part: ceil(part.tokens * share) for part, share in sent.items()}
        shown = sum(tokens.values())
        thought = sum(count for part, count in tokens.items() if part.kind == "thinking")
        hidden = self.usage.output_tokens - sum(part.tokens for part in self.parts)
        return replace(self.usage, output_tokens=hidden + shown, reasoning_tokens=hidden + thought)


def answer_to(
    asked: Asked, reply: Reply, *, tools: tuple[Mapping[str, Any], ...], counts: frozenset[str]
) -> Answer:
    """Make the answer; `counts` names the kinds of cached tokens that the protocol tells."""
    steps = [Say(step) if isinstance(step, str) else step for step in reply.steps]
    limit = asked.max_tokens
    hidden = reply.reasoning_tokens if limit is None else min(limit, reply.reasoning_tokens)
    left = None if limit is None else limit - hidden
    flow, cut = _flow_of(steps, left, asked.number)
    parts = [one for one in flow if isinstance(one, Part)]
    usage = _usage(reply, count_prompt(asked.messages, tools), hidden, parts, counts)
    last = steps[-1] if steps else None
    called = any(part.kind == "call" for part in parts)
    finish: Finish = "length" if cut else "calls" if called else "stop"
    return Answer(
        asked=asked,
        flow=tuple(flow),
        ending=last if isinstance(last, Refuse | BreakOff | Cut | Garble) else None,
        finish="filter" if isinstance(last, Withhold) and not cut else finish,
        usage=usage,
        told=usage if reply.usage_sent == "counted" else reply.usage_sent,
    )


def _flow_of(steps: list[Step], left: int | None, number: int) -> tuple[list[Part | Wait], bool]:
    """Lay out content and waits until the limit is reached; tell whether it was."""
    flow: list[Part | Wait] = []
    index = calls = 0
    for step in steps:
        if isinstance(step, Wait):
            flow.append(step)
            continue
        part = _part_of(step)
        if part is None:
            continue
        part = replace(part, index=index, call_index=calls)
        if part.kind == "call":
            part = replace(part, call_id=f"call_{number}_{calls}")
            calls += 1
        index += 1
        if left is not None and part.tokens > left:
            room = left * CHARS_PER_TOKEN - len(part.name)
            if room > 0:
                flow.append(replace(part, text=part.text[:room]))
            return flow, True
        left = None if left is None else left - part.tokens
        flow.append(part)
    return flow, False


def _part_of(step: Step) -> Part | None:
    if isinstance(step, Say):
        return Part(kind="text", text=step.text)
    if isinstance(step, Think):
        return Part(kind="thinking", text=step.text)
    if isinstance(step, CallTool):
        return Part(kind="call", text=step.json, name=step.name)
    return None


def _usage(
    reply: Reply, prompt: int, hidden: int, parts: list[Part], counts: frozenset[str]
) -> Usage:
    read = min(prompt, reply.cache_read_tokens)
    write = min(prompt - read, max(reply.cache_write_tokens, reply.cache_write_1h_tokens))
    thought = sum(part.tokens for part in parts if part.kind == "thinking")
    known = {
        "cache_read_tokens": read,
        "cache_write_tokens": write,
        "cache_write_1h_tokens": min(write, reply.cache_write_1h_tokens),
    }
    return Usage(
        input_tokens=prompt,
        output_tokens=hidden + sum(part.tokens for part in parts),
        reasoning_tokens=hidden + thought,
        **{name: count for name, count in known.items() if name in counts},
    )
