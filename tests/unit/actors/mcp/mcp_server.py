"""A real MCP server for tests, over standard input and output."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("tests", log_level="ERROR")


@server.tool()
def add(a: int, b: int = 2) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool(name="Say-It")
def say_it(text: str) -> str:
    """Say a text."""
    return text


@server.tool(name="say.it")
def say_it_too(text: str) -> str:
    return text


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("the moon is full")


@server.tool()
def hang() -> str:
    """Never answer."""
    threading.Event().wait(600)
    return ""


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


@server.tool()
def spawn() -> str:
    """Start a process that would outlive the server; return both ids."""
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    return f"{os.getpid()} {child.pid}"


@server.tool()
def where() -> str:
    """Tell the folder and a variable."""
    return f"{Path.cwd()} {os.environ.get('COLOUR')} {sorted(os.environ)}"


if __name__ == "__main__":
    server.run("stdio")
