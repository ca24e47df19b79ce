"""The MCP servers of one attempt; this module imports the package `mcp`."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import threading
from concurrent.futures import CancelledError, Future, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from cleveragents.actors.mcp.failure import call_failure, start_failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.types import CallToolResult, Tool

    from cleveragents.domain.plan_mcp import McpServer
    from cleveragents.domain.stop_signal import StopSignal

T = TypeVar("T")

#: What the package allows itself to end a server: 0.5 s to flush, and three times 2 s.
_CLOSE_S_MAX: Final = 10.0
#: How long the end of an attempt waits for a server that is still starting.
_START_S_MAX: Final = 2.0
_LOG_TAIL_BYTES: Final = 2_000
_PAGES_MAX: Final = 100
# Whatever the server started ends with it, also when it ends well or we are killed.
_LAUNCHER: Final = """\
import os, signal, subprocess, sys
if os.getpgrp() != os.getpid():
    os.setpgid(0, 0)
try:
    subprocess.call(sys.argv[1:])
finally:
    os.killpg(0, signal.SIGKILL)
"""


@dataclass(frozen=True, slots=True)
class _Open:
    client: Client
    tools: tuple[Tool, ...]


class Connections:
    """Connections to MCP servers, for the calls of one attempt; any thread may call.

    One thread with one event loop owns them from open to close. Closing ends every server that
    was started, with all its processes, within a bounded time.
    """

    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        self._servers = dict(servers)
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._scope: anyio.CancelScope | None = None
        self._opened: dict[str, Future[_Open]] = {name: Future() for name in servers}
        self._folder = Path(tempfile.mkdtemp(prefix="ca-mcp-"))
        self._thread = threading.Thread(target=self._own, name="ca-mcp")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        loop = self._loop.result(_CLOSE_S_MAX)
        # Cancelled while it starts a process, the event loop would forget that process.
        wait(self._opened.values(), _START_S_MAX)
        with suppress(RuntimeError):  # the loop has ended by itself
            loop.call_soon_threadsafe(self._cancel)
        self._thread.join(_CLOSE_S_MAX)

    def tools(self, name: str, stop: StopSignal) -> tuple[Tool, ...]:
        """Wait until a server has started, and return its tools; CA5210 when it does not."""
        return self._ready(name, stop).tools

    def call(
        self, name: str, tool: str, arguments: Mapping[str, Any], stop: StopSignal
    ) -> CallToolResult:
        """Call a tool and wait for its answer, until the stop; CA5210 when none can come."""
        client = self._ready(name, stop).client
        calling = client.call_tool(tool, dict(arguments))
        try:
            answer = asyncio.run_coroutine_threadsafe(calling, self._loop.result(_CLOSE_S_MAX))
        except RuntimeError as error:
            calling.close()
            raise call_failure(name, tool, error) from error
        try:
            return _waited(answer, stop, self._servers[name].timeout_s)
        except Exception as error:  # noqa: BLE001  # why is in the message: the package may raise any
            raise call_failure(name, tool, error) from None
        finally:
            answer.cancel()

    def _ready(self, name: str, stop: StopSignal) -> _Open:
        try:
            return _waited(self._opened[name], stop, self._servers[name].timeout_s)
        except Exception as error:  # noqa: BLE001  # as above
            raise start_failure(name, self._servers[name], error, self._log_tail(name)) from None

    def _own(self) -> None:
        try:
            asyncio.run(self._serve_all())
        finally:
            for opened in self._opened.values():
                opened.cancel()
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _serve_all(self) -> None:
        with anyio.CancelScope() as scope:
            self._scope = scope
            async with anyio.create_task_group() as group:
                for name in self._servers:
                    group.start_soon(self._serve, name)
                self._loop.set_result(asyncio.get_running_loop())
                await anyio.sleep_forever()

    async def _serve(self, name: str) -> None:
        opened = self._opened[name]
        try:
            with ExitStack() as files:
                async with self._client(self._servers[name], name, files) as client:
                    opened.set_result(_Open(client, await _all_tools(client)))
                    await anyio.sleep_forever()
        except Exception as error:  # noqa: BLE001  # told to whoever waits; later it says nothing new
            if not opened.done():
                opened.set_exception(error)

    def _client(self, server: McpServer, name: str, files: ExitStack) -> Client:
        if server.command is None:
            assert server.url is not None, "a server has a command or an address"
            return Client(server.url)
        program, *arguments = server.command
        found = shutil.which(program, path=server.env.get("PATH"))
        if found is None:
            raise FileNotFoundError(f"There is no program `{program}`")
        # It works in a folder of its own, so what is found from here needs its whole path.
        program = str(Path(found).absolute())
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-I", "-S", "-c", _LAUNCHER, program, *arguments],
            env=dict(server.env),
            cwd=self._folder,
        )
        log = files.enter_context(self._log(name).open("w", encoding="utf-8"))
        return Client(stdio_client(parameters, errlog=log))

    def _cancel(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _log_tail(self, name: str) -> str:
        try:
            data = self._log(name).read_bytes()
        except OSError:
            return ""
        return data[-_LOG_TAIL_BYTES:].decode("utf-8", "replace").strip()


def _waited(future: Future[T], stop: StopSignal, timeout_s: float) -> T:
    """Wait for a future until the stop or the time limit."""
    woken = threading.Event()
    future.add_done_callback(lambda _: woken.set())
    forget = stop.when_stopped(lambda _: woken.set())
    try:
        woken.wait(timeout_s)
        if future.done():
            return future.result()
        stop.raise_if_stopped()
        raise TimeoutError(f"It did not answer within {timeout_s:g} s")
    except CancelledError:
        raise ConnectionError("It was closed") from None
    finally:
        forget()


async def _all_tools(client: Client) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_PAGES_MAX):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(tools)
