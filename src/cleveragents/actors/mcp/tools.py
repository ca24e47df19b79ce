"""The tools of MCP servers as tools of ours."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cleveragents.actors.json_value import as_json
from cleveragents.actors.mcp.failure import start_failure, tool_failure
from cleveragents.actors.tool import Permission, Tool
from cleveragents.domain.conditions import did_you_mean
from cleveragents.domain.errors import SetupError
from cleveragents.domain.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.types import CallToolResult
    from mcp.types import Tool as McpTool

    from cleveragents.actors.mcp.connections import Connections
    from cleveragents.actors.tool import ToolCall
    from cleveragents.actors.tool_service import ToolService
    from cleveragents.application.attempts import AttemptContext
    from cleveragents.domain.plan_mcp import McpServer

_NAME_CHARS_MAX: Final = 64


@contextmanager
def with_mcp_tools(service: ToolService, attempt: AttemptContext) -> Iterator[ToolService]:
    """Give an attempt the tools of its node's MCP servers beside all others.

    The servers start now and end with the block. CA5210 says which one does not start, CA1007
    that the package for them is not installed.
    """
    servers = attempt.node.mcp
    if not servers:
        yield service
        return
    with _connections_to(servers) as connections:
        tools = [
            tool
            for name, server in servers.items()
            for tool in _tools_of(connections, name, server, attempt)
        ]
        yield replace(service, registry=service.registry.with_tools(*tools))


def _connections_to(servers: Any) -> Connections:
    try:
        from cleveragents.actors.mcp.connections import Connections
    except ImportError as error:
        raise SetupError(
            "The tools of MCP servers need a package that is not installed",
            code="CA1007",
            facts={"missing": error.name},
            hint="Run `pip install 'cleveragents[mcp]'`",
        ) from error
    return Connections(servers)


def _tools_of(
    connections: Connections, name: str, server: McpServer, attempt: AttemptContext
) -> list[Tool]:
    known = {tool.name: tool for tool in connections.tools(name, attempt.stop)}
    wanted = known if server.tools is None else server.tools
    taken: list[Tool] = []
    for tool_name in wanted:
        tool = known.get(tool_name)
        if tool is None:
            missing = f"it has no tool `{tool_name}`{did_you_mean(tool_name, known)}"
            raise start_failure(name, server, ValueError(missing), "")
        ours = _our_name(name, tool_name, {one.name for one in taken})
        taken.append(_tool(connections, name, server, tool, ours))
    return taken


def _tool(connections: Connections, name: str, server: McpServer, tool: McpTool, ours: str) -> Tool:
    def run(call: ToolCall) -> str:
        result = connections.call(name, tool.name, call.arguments, call.stop)
        text = redact(told(result))
        if result.is_error:
            raise tool_failure(name, tool.name, text)
        return text

    return Tool(
        name=ours,
        description=tool.description or f"`{tool.name}` of the MCP server `{name}`",
        run=run,
        permission=Permission(server.permission),
        timeout_s=server.timeout_s,
        json_schema=tool.input_schema,
        outside=True,
    )


def _our_name(server: str, tool: str, taken: set[str]) -> str:
    """Return a name that every model accepts, and that no other tool of the server has."""
    plain = re.sub(r"[^a-z0-9_]", "_", f"mcp_{server}_{tool}".lower())[:_NAME_CHARS_MAX]
    ours, number = plain, 2
    while ours in taken:
        ours = f"{plain[: _NAME_CHARS_MAX - 4]}_{number}"
        number += 1
    return ours


def told(result: CallToolResult) -> str:
    """Return an answer as text: models are told what cannot be shown."""
    parts = [_part(one) for one in result.content]
    if not parts and result.structured_content is not None:
        return as_json(result.structured_content)
    return "\n".join(parts)


def _part(content: Any) -> str:
    if content.type == "text":
        return str(content.text)
    if content.type == "resource" and (text := getattr(content.resource, "text", None)) is not None:
        return f"[{content.resource.uri}]\n{text}"
    if content.type == "resource_link":
        return f"[{content.uri}]"
    return f"[{content.type}: cannot be shown here]"
