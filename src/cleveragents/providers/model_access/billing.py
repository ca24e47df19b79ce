"""What is known about the bill of a call that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from cleveragents.domain.errors import CleverAgentsError

if TYPE_CHECKING:
    from pydantic_ai.models import StreamedResponse

    from cleveragents.domain.usage import Usage

__all__ = ["Billed", "CallFailed", "billed_after", "ended", "is_whole"]

#: `no`: refused before any work. `unknown`: sent, and then lost. `known`: the usage is complete.
Billed: TypeAlias = Literal["no", "unknown", "known"]

#: A provider that answers so has not begun to work. (408 is not among them: it may have.)
_REFUSALS: Final = frozenset({400, 401, 402, 403, 404, 405, 413, 414, 415, 422, 429, 529})


class CallFailed(CleverAgentsError):  # noqa: N818  # names what happened, like its kin
    """A call of a model failed; `error` (also its cause) says why, as pydantic-ai raised it."""

    code = "CA3110"

    def __init__(self, error: Exception, usage_so_far: Usage | None, billed: Billed) -> None:
        super().__init__(
            f"A call of a model failed with `{type(error).__name__}`", facts={"billed": billed}
        )
        self.error = error
        #: What the provider had reported when it failed; the whole if `billed` is `known`.
        self.usage_so_far = usage_so_far
        self.billed = billed
        self.__cause__ = error

    def __reduce__(self) -> tuple[Any, ...]:
        return CallFailed, (self.error, self.usage_so_far, self.billed)


def billed_after(error: Exception, stream: StreamedResponse | None) -> Billed:
    """Say what an error and the stream that it ended tell about the bill; in doubt, `unknown`."""
    from pydantic_ai.exceptions import (
        ModelConnectionError,
        ModelHTTPError,
        ModelOverloadedError,
        UserError,
    )

    if stream is not None:
        return "known" if is_whole(stream) else "unknown"
    match error:
        case ModelConnectionError():
            refused = error.phase in {"pool", "connect"}
        case ModelOverloadedError():
            refused = not error.in_stream
        case ModelHTTPError():
            refused = error.status_code in _REFUSALS and not error.in_stream
        case _:
            # pydantic-ai refuses what it cannot translate before anything is sent.
            refused = isinstance(error, UserError)
    return "no" if refused else "unknown"


def is_whole(stream: StreamedResponse) -> bool:
    """Say whether the provider told how the answer ended and what it used.

    Both come after all content, so nothing but a farewell can be missing then.
    """
    return ended(stream) and stream.usage.has_values() and not stream.usage.unmeasured_requests


def ended(stream: StreamedResponse) -> bool:
    """Say whether the provider told how the answer ended, be it in a word that nobody knows.

    Its own word stands in the details; the reason beside it is no proof, because pydantic-ai
    guesses one where a stream breaks off. Only a refusal has its reason there alone.
    """
    told = (stream.provider_details or {}).get("finish_reason")
    return bool(told) or stream.finish_reason == "content_filter"
