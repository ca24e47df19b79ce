"""A tree with a plan in it, and the command line run there; events as a runner tells them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cleveragents.cli.main import main
from cleveragents.domain.error_record import Action
from cleveragents.domain.money import Money
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.run_events import (
    AttemptFailed,
    LogLine,
    NodeFinished,
    NodeStarted,
    PlanEnded,
    PlanStarted,
    SpendChanged,
)
from cleveragents.infrastructure.plan_files import parse_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cleveragents.domain.plan import Plan

ID = "p-1"


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict]:
        return [json.loads(line) for line in self.out.splitlines()]


class PlanTree:
    """A repository in which plans are run."""

    def __init__(self, root: Path, monkeypatch, capsys) -> None:
        self.root = root
        self._capsys = capsys
        subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
        monkeypatch.chdir(root)
        monkeypatch.setenv("XDG_STATE_HOME", str(root / ".cleveragents" / "state"))

    def run(self, *arguments: str) -> Answer:
        code = main(arguments)
        return Answer(code, *self._capsys.readouterr())

    def run_plan(self, text: str, *arguments: str) -> Answer:
        (self.root / "plan.yaml").write_text(text, encoding="utf-8")
        return self.run("run", "plan.yaml", *arguments)

    @property
    def plan_id(self) -> str:
        """The newest plan."""
        return self.run("list", "--json").records[-1]["plan"]

    def start(self, text: str, *arguments: str) -> subprocess.Popen[str]:
        """Run a plan in a process of its own, and return once it runs."""
        (self.root / "plan.yaml").write_text(text, encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "cleveragents", "run", "plan.yaml", *arguments],
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.wait_until(lambda: any(one["state"] == "running" for one in self.plans()))
        return process

    def plans(self) -> list[dict]:
        return self.run("list", "--json").records

    def wait_until(self, reached: Callable[[], bool], timeout_s: float = 30.0) -> None:
        ends = time.monotonic() + timeout_s
        while not reached():
            assert time.monotonic() < ends, "waited in vain"
            threading.Event().wait(0.02)

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")


def plan(text: str) -> Plan:
    return parse_plan(text)


def nodes(*names: str, **more: str) -> Plan:
    """Return a plan of nodes that print, and of those whose YAML is given."""
    lines = [f"  {name}: {{actor: {{scripted: [{{print: x}}]}}}}" for name in names]
    lines += [f"  {name}: {text}" for name, text in more.items()]
    return parse_plan("goal: test\nnodes:\n" + "\n".join(lines))


def begun() -> PlanStarted:
    return PlanStarted(plan_id=ID, nodes=1)


def started(node: str, attempt: int = 1) -> NodeStarted:
    return NodeStarted(plan_id=ID, node=node, attempt=attempt, actor="scripted")


def failed(
    node: str, message: str, action: Action = Action.RETRY, *, attempt: int = 1, delay_s: float = 0
) -> AttemptFailed:
    return AttemptFailed(
        plan_id=ID,
        node=node,
        attempt=attempt,
        code="CA5201",
        message=message,
        action=action,
        reason="r",
        delay_s=delay_s,
    )


def finished(
    node: str, state: NodeState = NodeState.DONE, *, attempt: int = 1, changeset: str | None = None
) -> NodeFinished:
    return NodeFinished(
        plan_id=ID, node=node, state=state, attempt=attempt, duration_s=1.0, changeset=changeset
    )


def spent(node: str, amount: str) -> SpendChanged:
    return SpendChanged(plan_id=ID, node=node, attempt=1, amount=Money.of(amount))


def said(node: str, text: str) -> LogLine:
    return LogLine(plan_id=ID, node=node, attempt=1, text=text)


def over(state: str = "done", exit_code: int = 0) -> PlanEnded:
    return PlanEnded(plan_id=ID, state=state, exit_code=exit_code)
