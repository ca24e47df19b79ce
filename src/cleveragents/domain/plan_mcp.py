"""Servers of further tools, which speak the Model Context Protocol (MCP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from cleveragents.domain.plan_actors import TIMEOUT_S_MAX
from cleveragents.domain.plan_collections import FrozenMap, Listed, Mapped
from cleveragents.domain.plan_records import PlanValue, Record, spec
from cleveragents.domain.plan_rules import ANY_TEXT, At, Choice, Findings, Number, Text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MCP", "McpServer"]

_SERVER_NAME: Final = Text(
    "a word of small letters, digits and `_`, at most 20",
    chars_max=20,
    pattern=r"^[a-z][a-z0-9_]*$",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer(PlanValue):
    """A server whose tools models may call as `mcp_NAME_TOOL`; one command or one address.

    A command is started for each attempt and ended with it, in an empty folder of its own. It is
    not confined to the sandbox: what it does is not part of the plan's changes, and is not done
    again when a plan is resumed. `permission` says what it is trusted with.
    """

    command: tuple[str, ...] | None = spec(
        Listed(
            Text("an argument without NUL", chars_max=100_000, pattern=ANY_TEXT),
            "a program and its arguments",
            unique=False,
        ),
        "the program that serves over its standard input and output, and its arguments",
        None,
    )
    url: str | None = spec(
        Text("the address of a server", chars_max=2_000, pattern=r"^https?://[^\s/]+\S*$"),
        "where a server that runs already is reached",
        None,
    )
    env: Mapping[str, str] = spec(
        Mapped(
            Text(
                "a word of letters, digits and `_`",
                chars_max=100,
                pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
            ),
            Text("text in quotes", chars_max=100_000, pattern=ANY_TEXT, private=True),
            "names of variables to texts",
        ),
        "variables for the command, beside `PATH`, `HOME` and their like",
        FrozenMap(),
    )
    timeout_s: float = spec(
        Number(0, TIMEOUT_S_MAX, "seconds"), "how long its start and each call may take", 60.0
    )
    permission: Literal["read", "write", "run"] = spec(
        Choice(["read", "write", "run"]), "what its tools need to be allowed to do", "run"
    )
    tools: tuple[str, ...] | None = spec(
        Listed(Text("a name", chars_max=200), "names of tools, as the server calls them"),
        "which of its tools models may call; all by default",
        None,
    )

    @classmethod
    def settle(cls, values: dict[str, Any], at: At, found: Findings) -> None:
        """Demand one way to reach it."""
        named = [key for key in ("command", "url") if values[key] is not None]
        if len(named) != 1:
            got = "both" if named else "none"
            found.add(at, f"An MCP server must have one of `command` and `url`, got {got}")
        elif values["command"] is not None and not "".join(values["command"][:1]).strip():
            found.add((*at, "command"), "`command` must start with the name of a program, got none")
        elif values["url"] is not None and values["env"]:
            found.add((*at, "env"), "`env` must stand beside a `command`; a `url` takes none")


MCP: Final = Mapped(_SERVER_NAME, Record(McpServer), "names of servers to servers", size_max=20)
