"""Tools of MCP servers, with real servers over standard input and output, and over HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mcp")

from cleveragents.actors.mcp.connections import Connections
from cleveragents.actors.mcp.tools import told, with_mcp_tools
from cleveragents.actors.tool import Permission
from cleveragents.actors.tool_journal import MemoryToolJournal
from cleveragents.actors.tool_registry import ToolRegistry
from cleveragents.actors.tool_service import ToolLimits, ToolService
from cleveragents.application.attempts import AttemptContext
from cleveragents.domain.errors import RequestError, SandboxError, SetupError
from cleveragents.domain.plan import McpServer, Node, PrintStep, ScriptedActor
from cleveragents.domain.stop_signal import Stopped, StopSignal

SERVER = str(Path(__file__).with_name("mcp_server.py"))
COMMAND = (sys.executable, SERVER)
SILENT = (sys.executable, "-c", "import sys; sys.stdin.read()")
READ_ONLY = ToolLimits(permissions=frozenset({Permission.READ}))


def attempt(server: McpServer | None, **given) -> AttemptContext:
    node = Node(
        name="work",
        actor=ScriptedActor((PrintStep("nothing"),)),
        mcp={} if server is None else {"box": server},
        **given,
    )
    return AttemptContext(
        plan_id="p-1",
        goal="Tidy up",
        node=node,
        instance="work",
        attempt=1,
        inputs={},
        bench=None,
        purse=None,
        stop=StopSignal(),
        log=lambda _: None,
    )


class Desk:
    """An attempt with its tools."""

    def __init__(self, service: ToolService, context: AttemptContext) -> None:
        self.service = service
        self.context = context

    def names(self) -> list[str]:
        return [tool.name for tool in self.service.registry.tools()]

    def call(self, tool: str, **arguments) -> str:
        return self.service.call(
            self.context, f"mcp_box_{tool}", arguments, allowed=self.context.node.tools
        ).text


@contextmanager
def opened(server: McpServer | None = None, *, limits: ToolLimits | None = None, **given):
    context = attempt(server or McpServer(command=COMMAND), **given)
    service = ToolService(ToolRegistry(()), MemoryToolJournal(), limits or ToolLimits())
    with with_mcp_tools(service, context) as with_tools:
        yield Desk(with_tools, context)


@pytest.fixture(scope="module")
def desk():
    """One server for all tests that do it no harm."""
    with opened() as desk:
        yield desk


def test_tools_of_a_server_appear_under_names_that_models_accept(desk):
    assert desk.names() == [
        "mcp_box_add",
        "mcp_box_say_it",
        "mcp_box_say_it_2",
        "mcp_box_fail",
        "mcp_box_hang",
        "mcp_box_die",
        "mcp_box_spawn",
        "mcp_box_where",
    ]


def test_a_tool_keeps_the_description_and_schema_of_its_server(desk):
    tool = desk.service.registry.get("mcp_box_add")
    assert tool.description == "Add two numbers."
    assert tool.schema()["properties"]["b"] == {"default": 2, "title": "B", "type": "integer"}
    assert tool.schema()["required"] == ["a"]
    assert tool.permission is Permission.RUN
    assert tool.outside
    assert (
        desk.service.registry.get("mcp_box_say_it_2").description
        == "`say.it` of the MCP server `box`"
    )


def test_a_call_is_answered_and_recorded(desk):
    assert desk.call("add", a=40) == "42"
    record = desk.service.journal.calls()[-1]
    assert (record.tool, record.arguments, record.result_chars) == ("mcp_box_add", '{"a": "40"}', 2)


def test_calls_of_many_threads_do_not_mix(desk):
    from cleveragents.testing import run_together

    answers = run_together([lambda n=n: desk.call("add", a=n, b=n) for n in range(16)])
    assert answers == [str(2 * n) for n in range(16)]


def test_what_a_tool_answers_as_an_error_is_an_error(desk):
    with pytest.raises(SandboxError, match="the moon is full") as error:
        desk.call("fail")
    assert error.value.code == "CA5211"


def test_an_argument_that_is_missing_is_refused_before_the_call(desk):
    with pytest.raises(RequestError, match="`a` is missing"):
        desk.call("add", b=1)
    with pytest.raises(RequestError, match="mapping"):
        desk.service.call(desk.context, "mcp_box_add", [1])


def test_an_argument_that_the_server_refuses_is_an_error(desk):
    with pytest.raises(SandboxError) as error:
        desk.call("add", a="forty")
    assert error.value.code == "CA5211"


def test_a_stop_of_the_attempt_ends_a_call():
    with opened() as desk:
        timer = threading.Timer(0.2, desk.context.stop.stop)
        timer.start()
        with pytest.raises(Stopped):
            desk.call("hang")
        timer.join(5)


def test_a_call_that_hangs_is_out_of_time_and_the_server_stays():
    with opened() as desk:
        tool = desk.service.registry.get("mcp_box_hang")
        object.__setattr__(tool, "timeout_s", 0.2)
        with pytest.raises(SandboxError) as error:
            desk.call("hang")
        assert error.value.code == "CA5005"
        assert desk.call("add", a=1) == "3"


def test_a_server_that_dies_is_an_error_of_the_call_and_of_those_after_it():
    with opened() as desk:
        for tool in ("die", "add"):
            with pytest.raises(SandboxError, match="gave no answer") as error:
                desk.call(tool, a=1)
            assert error.value.code == "CA5210"


def test_every_process_of_a_server_ends_with_the_attempt():
    with opened() as desk:
        processes = [int(one) for one in desk.call("spawn").split()]
        assert all(alive(process) for process in processes)
    never = threading.Event()
    for _ in range(500):
        if not any(alive(process) for process in processes):
            return
        never.wait(0.01)
    raise AssertionError(f"some of {processes} are still there")


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_command_works_in_an_empty_folder_with_a_clean_environment(monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "1")
    with opened(McpServer(command=COMMAND, env={"COLOUR": "red"})) as desk:
        folder, colour, names = desk.call("where").split(" ", 2)
        assert Path(folder).name.startswith("ca-mcp-")
        assert colour == "red"
        assert "SECRET_OF_OURS" not in names
    assert not Path(folder).exists()


def test_only_named_tools_are_offered_and_need_the_permission_of_their_server():
    server = McpServer(command=COMMAND, tools=("Say-It",), permission="read")
    with opened(server, limits=READ_ONLY) as desk:
        assert desk.names() == ["mcp_box_say_it"]
        assert desk.call("say_it", text="hello") == "hello"


def test_a_server_that_may_run_is_refused_where_only_reading_is_allowed(desk):
    service = replace(desk.service, limits=READ_ONLY)
    with pytest.raises(SandboxError) as error:
        service.call(desk.context, "mcp_box_add", {"a": 1})
    assert error.value.code == "CA5202"


def test_a_node_that_names_its_tools_must_name_those_of_servers_too(desk):
    context = attempt(None, tools=("mcp_box_add",))
    with pytest.raises(SandboxError, match="not allowed"):
        desk.service.call(context, "mcp_box_say_it", {"text": "x"}, allowed=context.node.tools)


def test_a_named_tool_that_the_server_does_not_have_is_refused():
    server = McpServer(command=COMMAND, tools=("ad",))
    with pytest.raises(SandboxError, match="no tool `ad`; did you mean `add`"), opened(server):
        pass


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (McpServer(command=("no-such-program-here",)), "no program `no-such-program-here`"),
        (
            McpServer(command=(sys.executable, "-c", "import sys; sys.exit('it is broken')")),
            "closed",
        ),
        (McpServer(command=SILENT, timeout_s=0.3), "within 0.3 s"),
        (McpServer(url="http://127.0.0.1:9/mcp", timeout_s=10), "does not start"),
    ],
    ids=["missing", "broken", "silent", "unreachable"],
)
def test_a_server_that_does_not_start_fails_the_attempt(server, why):
    with pytest.raises(SandboxError, match=why) as error, opened(server):
        pass
    assert error.value.code == "CA5210"
    assert error.value.facts["server"] == "box"
    # The reason stands in the message: what caused it in the package for MCP says nothing more.
    assert error.value.__cause__ is None
    if why == "closed":
        assert "it is broken" in error.value.facts["printed"]
        assert error.value.message.endswith(", and printed 'it is broken'")


def test_without_servers_nothing_is_started():
    service = ToolService(ToolRegistry(()), MemoryToolJournal())
    with with_mcp_tools(service, attempt(None)) as same:
        assert same is service


def test_a_missing_package_is_told_with_the_way_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "cleveragents.actors.mcp.connections", None)
    with pytest.raises(SetupError) as error, opened():
        pass
    assert error.value.code == "CA1007"
    assert error.value.hint == "Run `pip install 'cleveragents[mcp]'`"


def test_a_call_after_the_end_is_an_error():
    with Connections({"box": McpServer(command=COMMAND)}) as connections:
        connections.tools("box", StopSignal())
    with pytest.raises(SandboxError) as error:
        connections.call("box", "add", {"a": 1}, StopSignal())
    assert error.value.code == "CA5210"


def test_an_end_before_the_start_leaves_nothing_behind():
    with Connections({"box": McpServer(command=COMMAND)}) as connections:
        pass
    assert not connections._thread.is_alive()
    with pytest.raises(SandboxError):
        connections.call("box", "add", {"a": 1}, StopSignal())


@pytest.fixture
def address():
    """Serve over HTTP on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = (
        f"import sys; sys.path.insert(0, {str(Path(SERVER).parent)!r})\n"
        f"from mcp_server import server; server.run('streamable-http', port={port})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    never = threading.Event()
    try:
        for _ in range(1000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            never.wait(0.02)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait(10)


def test_a_server_is_reached_over_http(address):
    with opened(McpServer(url=address)) as desk:
        assert desk.call("add", a=40) == "42"
        with pytest.raises(SandboxError, match="the moon is full"):
            desk.call("fail")


def part(kind: str, **values) -> SimpleNamespace:
    return SimpleNamespace(type=kind, **values)


@pytest.mark.parametrize(
    ("content", "structured", "text"),
    [
        ([part("text", text="one"), part("text", text="two")], None, "one\ntwo"),
        ([], {"a": 1}, '{"a": 1}'),
        ([], None, ""),
        ([part("image", data="…")], None, "[image: cannot be shown here]"),
        ([part("resource", resource=part("", uri="f:x", text="t"))], None, "[f:x]\nt"),
        (
            [part("resource", resource=part("", uri="f:x", blob="t"))],
            None,
            "[resource: cannot be shown here]",
        ),
        ([part("resource_link", uri="f:x")], None, "[f:x]"),
    ],
    ids=["text", "structured", "nothing", "image", "resource", "binary", "link"],
)
def test_answers_of_all_kinds_become_text(content, structured, text):
    assert told(SimpleNamespace(content=content, structured_content=structured)) == text
