"""Tools that only models need: ask the user, and look for context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.actors.llm.prompting import rendered_context
from cleveragents.actors.tool import Parameter, Tool
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.error_record import MESSAGE_CHARS_MAX, ErrorCategory
from cleveragents.domain.errors import PlanError, RequestError
from cleveragents.domain.redaction import redact_to

if TYPE_CHECKING:
    from pathlib import Path

    from cleveragents.actors.tool import ToolCall

#: How the message of a question begins.
QUESTION: Final = "The model asks: "
NO_ANSWER: Final = "Nobody answered. Decide yourself what is best, and say so in your result."


def _ask(call: ToolCall) -> str:
    """Return what was answered since the question was asked first, or ask it now."""
    said = f"{QUESTION}{call['question']}"
    # As the runner keeps the message of an error, which it hands to the next attempt.
    kept = redact_to(said, MESSAGE_CHARS_MAX)
    feedback = call.attempt.feedback
    asked = [at for at, one in enumerate(feedback) if one == kept]
    if asked:
        return "\n".join(feedback[asked[-1] + 1 :]) or NO_ANSWER
    raise PlanError(
        said,
        code="CA5209",
        facts={"question": call["question"], "category": ErrorCategory.QUESTION},
        hint="Let the model decide",
    )


ASK: Final = Tool(
    name="ask",
    description=(
        "Ask the user a question, and wait for the answer."
        " Ask only what you cannot find out and must not guess."
    ),
    run=_ask,
    parameters=(Parameter(name="question", about="one clear question", least=1, most=1_500),),
)


def context_tool(root: Path) -> Tool:
    """Return the tool that finds the parts of a tree that matter for a task."""

    def find(call: ToolCall) -> str:
        if call.attempt.find_context is None:
            raise RequestError("No context can be looked for here", code="CA5203")
        found = call.attempt.find_context(
            ContextRequest(call["task"], root, (), call["tokens_max"])
        )
        return rendered_context(found) or "Nothing was found"

    return Tool(
        name="context",
        description=(
            "Find the parts of the code that matter for a task; what you have changed counts."
        ),
        run=find,
        parameters=(
            Parameter(name="task", about="what you are looking for", least=1, most=10_000),
            Parameter(
                name="tokens_max",
                about="how much to show",
                kind="whole",
                required=False,
                default=4_000,
                least=100,
                most=50_000,
            ),
        ),
        timeout_s=120.0,
    )
