"""Tools change only what `writes` of the node allows, and say so at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cleveragents.application.write_patterns import forbidden, listed
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError

if TYPE_CHECKING:
    from cleveragents.actors.tool import ToolCall


def refuse_forbidden(call: ToolCall, *paths: str) -> None:
    """Refuse, with CA5202 and before anything is changed, what would fail the whole attempt."""
    writes = call.attempt.node.writes
    for path in forbidden(paths, writes)[:1]:
        raise SandboxError(
            f"{path!r} must stay as it is: the node may change {listed(writes)}",
            code="CA5202",
            facts={"path": path, "category": ErrorCategory.TOOL_DENIED},
            hint="Change only these",
        )
