"""The tools that every actor may know."""

from __future__ import annotations

from cleveragents.actors.command_tool import RUN_COMMAND
from cleveragents.actors.file_tools import EDIT_FILE, LIST_FILES, READ_FILE, WRITE_FILE
from cleveragents.actors.patch_tool import APPLY_PATCH
from cleveragents.actors.search_tool import search_text
from cleveragents.actors.tool_registry import ToolRegistry


def standard_tools() -> ToolRegistry:
    """Return a registry of the tools that read, search, write, edit, patch and run."""
    search = search_text()
    return ToolRegistry(
        (READ_FILE, LIST_FILES, search, WRITE_FILE, EDIT_FILE, APPLY_PATCH, RUN_COMMAND)
    )
