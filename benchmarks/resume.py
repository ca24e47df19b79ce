"""What a kill costs: 200 nodes of 50 ms, 16 at once, SIGKILL about half-way, then resume.

Each node writes down that it ran, in a file of its own that the runner knows nothing about: what
stands there twice was paid for twice. No node whose result was kept may, and of the others no
more than were in flight. The outputs must be those of a run that nobody disturbed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from _yardstick import Goals
from cleveragents.application.attempts import ActorResult
from cleveragents.domain.plan import Node, Plan, PythonActor
from cleveragents.domain.plan_graph import NodeState
from cleveragents.runs import RunParts, Runs
from cleveragents.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.application.attempts import AttemptContext

NODES: Final = 200
AT_ONCE: Final = 16
WORK_S: Final = 0.05
#: How many nodes are paid for when the kill comes; work goes in waves, so it must not be round.
KILLED_AT: Final = (91, 103, 118)


class Paid:
    """An actor whose every run costs something, and is written down."""

    def __init__(self, bills: Path) -> None:
        self._bills = bills

    def run(self, attempt: AttemptContext) -> ActorResult:
        """Work for a while, and write it down."""
        time.sleep(WORK_S)
        bill = os.open(self._bills, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(bill, f"{attempt.instance}\n".encode())
        os.close(bill)
        return ActorResult({"node": attempt.instance, "half": len(attempt.instance) / 2})


def the_plan() -> Plan:
    """Return 200 nodes in two rows, so that there are dependants to start too early."""
    paid = PythonActor("benchmarks.resume:paid")
    first = [f"a-{number}" for number in range(NODES // 2)]
    second = [
        Node(name=f"b-{number}", actor=paid, needs=(f"a-{number}",))
        for number in range(NODES - NODES // 2)
    ]
    return Plan(
        goal="Pay once",
        at_once=AT_ONCE,
        nodes=(*(Node(name=name, actor=paid) for name in first), *second),
    )


def run(folder: Path) -> Mapping[str, object]:
    """Run the plan, or go on with it; return its outputs."""
    tree = folder / "tree"
    tree.mkdir(exist_ok=True)
    actor = Paid(folder / "bills")
    with (
        Workspace(tree) as workspace,
        Runs(workspace, RunParts(build_actor=lambda _: actor)) as runs,
    ):
        result = runs.run(the_plan(), "p")
    assert result.exit_code == 0, result.error
    return result.outputs


def bills(folder: Path) -> list[str]:
    """Return which nodes were paid for, by now."""
    path = folder / "bills"
    return path.read_text().splitlines() if path.exists() else []


def kept(folder: Path) -> set[str]:
    """Return the nodes whose result is in the store."""
    with Workspace(folder / "tree") as workspace, Runs(workspace) as runs:
        return {one.id for one in runs.nodes("p") if one.state is NodeState.DONE}


def killed_half_way(folder: Path, paid: int) -> None:
    """Start a process on the plan, and kill it when so many nodes are paid for."""
    process = subprocess.Popen([sys.executable, __file__, str(folder)])
    while len(bills(folder)) < paid:
        time.sleep(0.001)
        assert process.poll() is None, "it ended before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait()


def main() -> None:
    """Kill and resume a few times, and compare with a run that nobody disturbs."""
    if len(sys.argv) > 1:
        run(Path(sys.argv[1]))
        return
    goals = Goals()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        calm = run(Path(folder))
    print(f"{NODES} nodes of {WORK_S * 1e3:.0f} ms, {AT_ONCE} at once, killed half-way")
    for paid in KILLED_AT:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            place = Path(folder)
            killed_half_way(place, paid)
            before, finished = bills(place), kept(place)
            outputs = run(place)
            after = bills(place)[len(before) :]
            print(f"  paid {len(before)} and kept {len(finished)} when killed, then {len(after)}")
            goals.exactly("finished nodes that were run again", len(finished & set(after)), 0)
            goals.at_most("nodes paid for twice", len(set(before) & set(after)), AT_ONCE)
            goals.exactly("nodes never paid for", NODES - len(set(before) | set(after)), 0)
            goals.exactly("outputs as in the calm run", outputs == calm, True)
    goals.finish()


if __name__ == "__main__":
    main()
