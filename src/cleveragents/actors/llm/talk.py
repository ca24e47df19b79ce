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

from cleveragents.actors.cut_text import without_middle
from cleveragents.providers.model_access.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ToolCallPart

    from cleveragents.application.conversations import Conversation, Turn

Exchange: TypeAlias = "tuple[ModelRequest, ModelResponse]"

#: What is too long may be so by far: of a result that is cut, a quarter stays.
_CUT_TO: Final = 4
_CUT_CHARS_LEAST: Final = 400
_DROPPED: Final = "[left out, because the conversation became too long; call the tool again]"


class Talk:
    """What was said and what is said next; for the one thread that runs the attempt.

    It raises `ValueError` where what was kept cannot be read any more.
    """

    def __init__(self, kept: Conversation) -> None:
        self.id = kept.id
        self.turns = kept.turns
        #: What its messages weigh: they are sent again with every question, and weighed once.
        self.weights = Weights()
        self._said = [_read(turn) for turn in kept.turns]
        self._next: tuple[ModelRequestPart, ...] = ()
        self._request = ModelRequest(parts=[])
        self._dropped = kept.turns[-1].dropped if kept.turns else 0
        self._sent = self._shortened()

    # -- saying ----------------------------------------------------------------------------

    def begin(self, system: str, task: str) -> None:
        """Say what the conversation is about."""
        self._say(SystemPromptPart(utf8(system)), UserPromptPart(utf8(task)))

    def tell(self, text: str) -> None:
        """Say something more with the next question."""
        self._say(*self._next, UserPromptPart(utf8(text)))

    def answer_calls(self, results: Sequence[ToolReturnPart]) -> None:
        """Say what the calls of the last answer gave; it stands before all else."""
        self._say(*results, *self._next)

    def messages(self) -> list[ModelMessage]:
        """Return all messages of the next question."""
        return [*self._sent, self._request]

    @property
    def request(self) -> ModelRequest:
        """What is new in the next question."""
        return self._request

    def heard(self, turn: Turn, response: ModelResponse) -> None:
        """Take the answer to the question."""
        self._said.append((self._request, response))
        self._sent += (self._request, response)
        self.turns = (*self.turns, turn)
        self._say()

    def _say(self, *parts: ModelRequestPart) -> None:
        self._next = parts
        self._request = ModelRequest(parts=list(parts))

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
        """Say whether there are results of tools that could be left out, or one to be cut."""
        return len(self._results()) > self._dropped or self._largest() is not None

    def shrink(self) -> None:
        """Leave out the oldest results of tools, half of what they weigh.

        Where a new one weighs more than all of them, it is what is too long: its middle goes.
        """
        left = self._results()[self._dropped :]
        weight = sum(map(_weight, left))
        largest = self._largest()
        if largest is not None and _weight(largest) >= weight:
            self._say(*(_cut(part) if part is largest else part for part in self._next))
            return
        gone = 0
        for one in left:
            gone += _weight(one)
            self._dropped += 1
            if 2 * gone >= weight:
                break
        self._sent = self._shortened()

    def _results(self) -> list[ToolReturnPart]:
        # What was not answered yet is what the model wants to know now.
        parts = [part for request, _ in self._said for part in request.parts]
        return [part for part in parts if isinstance(part, ToolReturnPart)]

    def _largest(self) -> ToolReturnPart | None:
        """Return the largest result that was not answered yet, if it can be cut."""
        new = [part for part in self._next if isinstance(part, ToolReturnPart)]
        largest = max(new, key=_weight, default=None)
        return None if largest is None or _weight(largest) < _CUT_CHARS_LEAST else largest

    def _shortened(self) -> list[ModelMessage]:
        """Return what was said as it is sent from now on."""
        left = self._dropped
        sent: list[ModelMessage] = []
        for request, response in self._said:
            parts: list[ModelRequestPart] = []
            for part in request.parts if left else ():
                if left and isinstance(part, ToolReturnPart):
                    left -= 1
                    parts.append(_emptied(part))
                else:
                    parts.append(part)
            sent += (replace(request, parts=parts) if parts else request, response)
        return sent


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


def _cut(part: ToolReturnPart) -> ToolReturnPart:
    kept = max(_CUT_CHARS_LEAST // 2, _weight(part) // _CUT_TO)
    return replace(part, content=without_middle(str(part.content), kept))


def _weight(part: ToolReturnPart) -> int:
    return len(str(part.content))
