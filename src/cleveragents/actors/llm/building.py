"""From a model actor of a plan to the one that runs; SDKs are imported for the first one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cleveragents.actors.llm.own_tools import ASK, context_tool
from cleveragents.actors.standard_tools import standard_tools
from cleveragents.actors.tool_service import ToolService
from cleveragents.domain.errors import SetupError

if TYPE_CHECKING:
    from pathlib import Path

    from cleveragents.actors.llm.parts import LlmParts
    from cleveragents.actors.tool_journal import ToolJournal
    from cleveragents.application.attempts import Actor
    from cleveragents.domain.plan_actors import LlmActor as LlmValue


def llm_tools(journal: ToolJournal, root: Path) -> ToolService:
    """Return the tools that models know: the standard ones, `ask` and `context`."""
    return ToolService(standard_tools().with_tools(ASK, context_tool(root)), journal)


def llm_actor(value: LlmValue, parts: LlmParts) -> Actor:
    """Return the actor of a value; CA1007 when the packages for models are not installed."""
    try:
        from cleveragents.actors.llm.actor import LlmActor
    except ImportError as error:
        raise SetupError(
            f"The model `{value.model}` needs packages that are not installed",
            code="CA1007",
            facts={"missing": error.name},
            hint="Run `pip install 'cleveragents[llm]'`",
        ) from error
    return LlmActor(value, parts)
