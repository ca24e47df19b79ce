"""The tool that runs a command in the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.actors.command_failure import raise_if_ended_early
from cleveragents.actors.cut_text import without_middle
from cleveragents.actors.tool import Parameter, Permission, Tool
from cleveragents.domain.command import Command, CommandLimits
from cleveragents.domain.redaction import redact

if TYPE_CHECKING:
    from cleveragents.actors.tool import ToolCall

TIMEOUT_S_MAX: Final = 600
_STREAM_CHARS_MAX: Final = 25_000


def _run(call: ToolCall) -> str:
    node = call.attempt.node
    command = Command(
        ("sh", "-c", call["command"]),
        env=node.env,
        folder=node.folder,
        limits=CommandLimits(call["timeout_s"]),
        network=bool(node.network),
    )
    finished = call.attempt.bench.run(command, stop=call.stop)
    raise_if_ended_early(command, finished, call.stop)
    streams = (("standard output", finished.stdout), ("standard error", finished.stderr))
    told = [f"[{name}]\n{_shown(data)}" for name, data in streams if data]
    return "\n".join((f"[exit code {finished.exit_code}]", *told))


def _shown(data: bytes) -> str:
    # Secrets are searched for in what is left: more than that is not searched.
    return redact(without_middle(data.decode("utf-8", "replace"), _STREAM_CHARS_MAX))


RUN_COMMAND: Final = Tool(
    name="run_command",
    description=(
        "Let a shell run a command in the sandbox, and show its exit code and what it printed."
    ),
    run=_run,
    parameters=(
        Parameter(name="command", about="what the shell shall run", least=1, most=100_000),
        Parameter(
            name="timeout_s",
            about="how many seconds it may take",
            kind="whole",
            required=False,
            default=120,
            least=1,
            most=TIMEOUT_S_MAX,
        ),
    ),
    permission=Permission.RUN,
    # The command has its own limit, which must come first.
    timeout_s=TIMEOUT_S_MAX + 10.0,
)
