"""What is told when an MCP server cannot help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.redaction import redact_to

if TYPE_CHECKING:
    from cleveragents.domain.plan_mcp import McpServer

_WHY_CHARS_MAX: Final = 500


def start_failure(name: str, server: McpServer, error: BaseException, printed: str) -> SandboxError:
    """Return why a server does not start, with the end of what it printed."""
    what = f"command `{server.command[0]}`" if server.command else f"address `{server.url}`"
    said = redact_to(printed, _WHY_CHARS_MAX)
    # Its last line tells most: an exception of Python ends with what it is.
    ending = f", and printed {said.splitlines()[-1].strip()!r:.200}" if said else ""
    return SandboxError(
        f"The MCP server `{name}` ({what}) does not start: {why(error)}{ending}",
        code="CA5210",
        facts={
            "server": name,
            "category": ErrorCategory.TOOL_TRANSIENT,
            **({"printed": said} if said else {}),
        },
        hint=f"Look at `mcp.{name}` of the plan",
    )


def call_failure(name: str, tool: str, error: BaseException) -> SandboxError:
    """Return why a call got no answer."""
    return SandboxError(
        f"The MCP server `{name}` gave no answer to `{tool}`: {why(error)}",
        code="CA5210",
        facts={"server": name, "tool": tool, "category": ErrorCategory.TOOL_CRASH},
    )


def tool_failure(name: str, tool: str, text: str) -> SandboxError:
    """Return the error that a tool of a server answered."""
    return SandboxError(
        f"`{tool}` of the MCP server `{name}` failed: {text}",
        code="CA5211",
        facts={"server": name, "tool": tool, "category": ErrorCategory.TOOL_CRASH},
    )


def why(error: BaseException) -> str:
    """Return the innermost reason: connections fail in groups of one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return redact_to(str(error) or type(error).__name__, _WHY_CHARS_MAX)
