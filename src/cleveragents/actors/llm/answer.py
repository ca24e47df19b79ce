"""The answer that ends the work: it must be whole, and have the form that its node promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cleveragents.actors.captured_output import captured
from cleveragents.actors.json_value import output_error
from cleveragents.application.services.run_result import ANEW
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.plan_options import Capture

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

_OF = "the model"


def output_of(last: ModelResponse, wanted: Capture | tuple[str, ...]) -> Any:
    """Return what an answer gives its node; refuse with CA5204 what is half or of another form."""
    _refuse_half(last)
    text = text_of(last)
    shown = text if wanted in (Capture.TEXT, Capture.LINES) else without_fence(text)
    try:
        return captured(shown.encode("utf-8", "replace"), wanted, of=_OF)
    except SandboxError as refused:
        refused.facts["category"] = ErrorCategory.BAD_OUTPUT
        refused.hint = f"Say in `prompt` what the answer must hold, or name another model: {ANEW}"
        raise


def text_of(last: ModelResponse) -> str:
    """Return what an answer says."""
    return (last.text or "").strip()


def without_fence(text: str) -> str:
    """Return what a model put between three backticks, if that is all it said."""
    lines = text.split("\n")
    fenced = len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text


def _refuse_half(last: ModelResponse) -> None:
    """Refuse what came with HTTP 200 and is no whole answer: only how it ended tells."""
    match last.finish_reason:
        case "content_filter":
            raise _half(
                "The answer of the model was withheld by a filter",
                "Word it otherwise, and leave out what a filter could take for harm.",
                f"Word the prompt otherwise, or name other models in `fall_back`: {ANEW}",
                ErrorCategory.CONTENT_FILTER,
            )
        case "length":
            raise _half(
                "The answer of the model was cut, because it was longer than its limit",
                "Answer more briefly, in smaller steps.",
                f"Raise `tokens_max` of the actor, or ask for less at once: {ANEW}",
            )
        case "error":
            raise _half(
                "The provider broke the answer of the model off",
                "Answer again.",
                f"Name another model: {ANEW}",
            )
    if not text_of(last):
        raise _half(
            "The model answered nothing",
            "Say the result of the task.",
            f"Say in `prompt` what the answer must hold, or name another model: {ANEW}",
        )


def _half(
    message: str, told: str, hint: str, category: ErrorCategory = ErrorCategory.BAD_OUTPUT
) -> SandboxError:
    """Return the refusal: `told` goes to the model with the message, the hint to the user."""
    refused = output_error(message, _OF, hint=hint)
    refused.facts |= {"category": category, "output": told}
    return refused
