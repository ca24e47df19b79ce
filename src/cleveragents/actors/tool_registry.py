"""Which tools there are."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from cleveragents.domain.conditions import did_you_mean
from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from cleveragents.actors.tool import Tool


class ToolRegistry:
    """The tools of one service, each under its name; it never changes, so threads may share it."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        known: dict[str, Tool] = {}
        for tool in tools:
            if known.setdefault(tool.name, tool) is not tool:
                raise RequestError(
                    f"Each tool must have a name of its own, got `{tool.name}` twice",
                    hint="Give one of them another name",
                )
        self._tools = MappingProxyType(known)

    def get(self, name: str) -> Tool:
        """Return a tool; CA5203 says which one may be meant."""
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(f"`{one}`" for one in self._tools)
            raise RequestError(
                f"There is no tool `{name}`{did_you_mean(name, self._tools)}",
                code="CA5203",
                facts={"tool": name},
                hint=f"Call one of {known}",
            )
        return tool

    def tools(self, allowed: Collection[str] | None = None) -> tuple[Tool, ...]:
        """Return the tools in the order of their making; with names, only those."""
        return tuple(
            tool for tool in self._tools.values() if allowed is None or tool.name in allowed
        )

    def with_tools(self, *more: Tool) -> ToolRegistry:
        """Return a registry that knows more tools."""
        return ToolRegistry((*self._tools.values(), *more))
