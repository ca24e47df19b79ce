"""A conversation while it goes on: what was said, what is said next, and what is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolReturnPart,
    UserPromptPart,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ToolCallPart

    from cleveragents.application.conversations import Conversation, Turn

Exchange: TypeAlias = "tuple[ModelRequest, ModelResponse]"

_DROPPED: Final = "[left out, because the conversation became too long; call the tool again]"


class Talk:
    """What was said and what is said next; for the one thread that runs the attempt.

    It raises `ValueError` where what was kept cannot be read any more.
    """

    def __init__(self, kept: Conversation) -> None:
        self.id = kept.id
        self.turns = kept.turns
        self._said = [_read(turn) for turn in kept.turns]
        self._next: list[ModelRequestPart] = []
        self._dropped = kept.turns[-1].dropped if kept.turns else 0

    # -- saying ----------------------------------------------------------------------------

    def begin(self, system: str, task: str) -> None:
        """Say what the conversation is about."""
        self._next = [SystemPromptPart(utf8(system)), UserPromptPart(utf8(task))]

    def tell(self, text: str) -> None:
        """Say something more with the next question."""
        self._next.append(UserPromptPart(utf8(text)))

    def answer_calls(self, results: Sequence[ToolReturnPart]) -> None:
        """Say what the calls of the last answer gave; it stands before all else."""
        self._next = [*results, *self._next]

    def messages(self) -> list[ModelMessage]:
        """Return all messages of the next question."""
        said: list[ModelMessage] = [one for exchange in self._said for one in exchange]
        return [*self._shortened(said), self.request]

    @property
    def request(self) -> ModelRequest:
        """What is new in the next question."""
        return ModelRequest(parts=list(self._next))

    def heard(self, turn: Turn, response: ModelResponse) -> None:
        """Take the answer to the question."""
        self._said.append((self.request, response))
        self.turns = (*self.turns, turn)
        self._next = []

    # -- looking ---------------------------------------------------------------------------

    @property
    def last(self) -> ModelResponse | None:
        """The last answer, if nothing was said since."""
        return self._said[-1][1] if self._said and not self._next else None

    @property
    def open_calls(self) -> list[ToolCallPart]:
        """The calls of the last answer, which wait for their results."""
        return [] if self.last is None else self.last.tool_calls

    def exchanges(self) -> Iterator[tuple[ModelResponse, dict[str, ToolReturnPart]]]:
        """Yield the answers whose calls were carried out, each with what these gave."""
        for (_, response), (request, _) in zip(self._said, self._said[1:], strict=False):
            results = [part for part in request.parts if isinstance(part, ToolReturnPart)]
            yield response, {part.tool_call_id: part for part in results}

    def times_told(self, text: str) -> int:
        """Say how often the model was told a text, alone or within a longer one."""
        wanted = utf8(text)
        requests = [*(request for request, _ in self._said), self.request]
        return sum(one.count(wanted) for request in requests for one in _texts(request))

    @property
    def turns_since_told(self) -> int:
        """How many answers came since we last said something of our own."""
        requests = [*(request for request, _ in self._said), self.request]
        spoken = (any(isinstance(part, UserPromptPart) for part in one.parts) for one in requests)
        return len(requests) - 1 - max(at for at, ours in enumerate(spoken) if ours)

    # -- shortening ------------------------------------------------------------------------

    @property
    def dropped(self) -> int:
        """How many of the oldest results of tools are left out."""
        return self._dropped

    @property
    def can_shrink(self) -> bool:
        """Say whether there are results of tools that could be left out."""
        return len(self._results()) > self._dropped

    def shrink(self) -> None:
        """Leave out the oldest results of tools, half of what they weigh."""
        left = self._results()[self._dropped :]
        weight = sum(map(_weight, left))
        gone = 0
        for one in left:
            gone += _weight(one)
            self._dropped += 1
            if 2 * gone >= weight:
                return

    def _results(self) -> list[ToolReturnPart]:
        # What was not answered yet is what the model wants to know now.
        parts = [part for request, _ in self._said for part in request.parts]
        return [part for part in parts if isinstance(part, ToolReturnPart)]

    def _shortened(self, said: list[ModelMessage]) -> Iterator[ModelMessage]:
        left = self._dropped
        for message in said:
            if left and isinstance(message, ModelRequest):
                parts: list[ModelRequestPart] = []
                for part in message.parts:
                    if left and isinstance(part, ToolReturnPart):
                        left -= 1
                        parts.append(_emptied(part))
                    else:
                        parts.append(part)
                yield replace(message, parts=parts)
            else:
                yield message


def written(message: ModelMessage) -> str:
    """Return a message as JSON."""
    return ModelMessagesTypeAdapter.dump_json([message]).decode()


def utf8(text: str) -> str:
    r"""Return a text as JSON and providers can take it; a lone surrogate is spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _read(turn: Turn) -> Exchange:
    (request,) = ModelMessagesTypeAdapter.validate_json(turn.request)
    (response,) = ModelMessagesTypeAdapter.validate_json(turn.response)
    if not isinstance(request, ModelRequest) or not isinstance(response, ModelResponse):
        raise ValueError(f"turn {turn.number} is no question with its answer")  # noqa: TRY004  # what is kept is wrong, no type of ours
    return request, response


def _texts(request: ModelRequest) -> Iterator[str]:
    for part in request.parts:
        if isinstance(part, UserPromptPart | ToolReturnPart) and isinstance(part.content, str):
            yield part.content


def _emptied(part: ToolReturnPart) -> ToolReturnPart:
    return ToolReturnPart(
        tool_name=part.tool_name,
        content=_DROPPED,
        tool_call_id=part.tool_call_id,
        timestamp=part.timestamp,
        outcome=part.outcome,
    )


def _weight(part: ToolReturnPart) -> int:
    return len(str(part.content))
