"""Processes that run a plan of model actors against a server on loopback, until they are killed.

Run as `python llm_process.py`; each line on standard input is a JSON list `ROOT URL [NAME:N]`.
It forks a process for it, which kills itself the n-th time at a point if one is named, and says
how that ended. A fork has the SDKs imported, which is most of the time that such a process takes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path

import pydantic_ai.models.openai  # noqa: F401  # loaded before the forks

from cleveragents.actors.tool_service import ToolService
from cleveragents.domain.plan import Budget, LlmActor, Node, Plan
from cleveragents.domain.plan_graph import NodeState
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.plan_journal import SqliteRunBook
from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree
from cleveragents.infrastructure.sqlite_conversations import SqliteConversations
from cleveragents.providers.model_access.line import ModelLine
from cleveragents.providers.pricing import Price, PriceTable
from cleveragents.runs import RunParts, Runs
from cleveragents.testing import CallTool, Say
from cleveragents.workspace import Workspace, WorkspaceOptions
from crash.plan_runner_process import dying, is_about

PLAN_ID = "p-llm"
MODEL = "openai:cheap"
PRICES = PriceTable({MODEL: Price(input_mtok="1.25", output_mtok="10")})
NODES = 3
#: How often each node asks.
TURNS = 4
#: What takes longer than this hangs.
SECONDS_MAX = 120

POINTS = {
    "reserved": (DurableCostTracker, "reserve", {"after": True}),
    "answered": (ModelLine, "request", {"after": True}),
    # Keeping and paying are one transaction: in its middle, after it, and after all is told of it.
    "half-kept": (SqliteConversations, "_insert", {"after": True}),
    "paid": (DurableCostTracker, "_adopt", {}),
    "kept": (SqliteConversations, "keep", {"after": True}),
    "in-a-tool": (ConfinedTree, "write", {"after": True}),
    "after-a-tool": (ToolService, "call", {"after": True}),
    "sealed": (SqliteRunBook, "put", {"when": is_about(NodeState.MERGING)}),
}


def the_plan(url: str) -> Plan:
    nodes = tuple(
        Node(
            name=f"n{number}",
            actor=LlmActor(MODEL, f"Work on [{number}]", base_url=url, tokens_max=500),
        )
        for number in range(NODES)
    )
    return Plan(goal="Survive", nodes=nodes, at_once=NODES, budget=Budget(max_usd=1))


def number_in(asked) -> int:
    """Say which node asks."""
    return int(asked.text.partition("Work on [")[2].partition("]")[0])


def script(asked):
    """Read a file, change it, run a command, and be done."""
    number = number_in(asked)
    return [
        CallTool("read_file", {"path": f"{number}.txt"}),
        [
            CallTool("edit_file", {"path": f"{number}.txt", "old": "todo", "new": "done"}),
            CallTool("write_file", {"path": f"out/{number}.txt", "text": f"{number}\n"}),
        ],
        CallTool("run_command", {"command": f"echo ran >> ran{number}.txt"}),
        Say(f"{number} is done"),
    ][asked.turns]


def plant(root: Path) -> None:
    root.mkdir()
    for number in range(NODES):
        (root / f"{number}.txt").write_text("todo\n")


OPTIONS = WorkspaceOptions(sandbox_kind="copy", confinement="off")


def main() -> None:
    for line in sys.stdin:
        assert threading.active_count() == 1, "a fork would copy locks that others hold"
        child = os.fork()
        if child == 0:
            _be_a_process(*json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _be_a_process(root: str, url: str, *points: str) -> None:
    """Run the plan in a child, with what it says in files beside the tree; never return."""
    signal.alarm(SECONDS_MAX)
    for descriptor, ending in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(root + ending, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), descriptor)
    code = 1
    try:
        run(Path(root), url, *points)
        code = 0
    except BaseException:  # noqa: BLE001  # whatever it is, the parent must hear of it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def run(root: Path, url: str, point: str | None = None) -> None:
    if point is not None:
        place, _, number = point.partition(":")
        owner, name, options = POINTS[place]
        setattr(owner, name, dying(getattr(owner, name), int(number), **options))
    with (
        Workspace(root, options=OPTIONS) as workspace,
        Runs(workspace, RunParts(prices=PRICES)) as runs,
    ):
        result = runs.run(the_plan(url), PLAN_ID)
    os.write(1, f"end {result.state} {result.exit_code}\n".encode())


if __name__ == "__main__":
    main()
