"""What the server needs to know of a protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping

    from cleveragents.domain.usage import Usage
    from cleveragents.testing.answer import Answer, Part
    from cleveragents.testing.script import Message, ProtocolName, Refusal

#: When every answer was made, as far as it says: runs of one test are alike.
CREATED_S: Final = 1_790_000_000


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal on the wire; a `body` that is a text is sent as HTML, as gateways do."""

    status: int
    body: Mapping[str, Any] | str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a request says, in the words of all protocols."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    tool_names: tuple[str, ...]
    max_tokens: int | None
    stream: bool


class Dialect(Protocol):
    """A protocol: reads requests, writes answers, streams and refusals; it keeps no state."""

    @property
    def name(self) -> ProtocolName:
        """Its name in `Asked` and `Bill`."""
        ...

    @property
    def path(self) -> re.Pattern[str]:
        """Where it answers."""
        ...

    @property
    def counts(self) -> frozenset[str]:
        """The kinds of cached tokens that its usage tells."""
        ...

    def read(self, path: str, body: Mapping[str, Any]) -> Prompt:
        """Understand a request."""
        ...

    def raw_usage(self, usage: Usage) -> dict[str, Any]:
        """Say usage in its own words."""
        ...

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        ...

    def opening(self, answer: Answer) -> Iterator[str]:
        """Yield the events before the content."""
        ...

    def content(self, answer: Answer, part: Part) -> Iterator[str]:
        """Yield the events of one part."""
        ...

    def closing(self, answer: Answer) -> Iterator[str]:
        """Yield the events after the content."""
        ...

    def refused(self, why: Refusal, model: str, retry_after_s: float | None) -> Refused:
        """Return a refusal as the provider words it."""
        ...

    def error_event(self, why: Refusal, answer: Answer) -> str:
        """Return the event of a stream that tells of an error."""
        ...


def event(data: object, name: str | None = None, *, end: str = "\n") -> str:
    """Write one server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    head = "" if name is None else f"event: {name}{end}"
    return f"{head}data: {text}{end}{end}"


def plain(content: object) -> str:
    """Return the text of a content that is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content)
    return "\n".join(
        str(block["text"]) if "text" in block else f"[{block.get('type', 'block')}]"
        for block in content
    )


def retry_headers(retry_after_s: float | None) -> dict[str, str]:
    """Return the header that names the time to come back, if there is one."""
    return {} if retry_after_s is None else {"retry-after": f"{retry_after_s:g}"}


def gateway_page(status: int, reason: str) -> str:
    """Return the page of a gateway that stands before the provider."""
    title = f"{status} {reason}"
    return (
        f"<html>\r\n<head><title>{title}</title></head>\r\n"
        f"<body>\r\n<center><h1>{title}</h1></center>\r\n</body>\r\n</html>\r\n"
    )
