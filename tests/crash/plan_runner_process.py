"""A process that runs a plan on a tree, or goes on with it, until somebody kills it.

Run as `python plan_runner_process.py ROOT [WORD…]`: it writes one line for each event. Words:
`point=NAME:N` kills it at the n-th time it gets there, `hold` lets it wait for a line after the
first node, `silent` stops its heartbeat, `lease=SECONDS`; `merge-first` and `no-fence` are twins:
naive runners that the tests must catch.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from cleveragents.application.services.attempt_order import Outcome
from cleveragents.application.services.node_attempt import NodeAttempt
from cleveragents.application.services.run_options import RunOptions
from cleveragents.domain.errors import CleverAgentsError
from cleveragents.domain.plan import (
    EditStep,
    FailStep,
    Node,
    Plan,
    PrintStep,
    ScriptedActor,
    SleepStep,
    SpendStep,
    WriteStep,
)
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.run_events import NodeFinished
from cleveragents.infrastructure import plan_journal
from cleveragents.infrastructure.plan_jobs import JobHeart
from cleveragents.infrastructure.plan_journal import SqliteRunBook
from cleveragents.runs import RunParts, Runs, WorkspaceBenches
from cleveragents.workspace import Workspace, WorkspaceOptions

PLAN_ID = "p-kills"
WORKERS = 26
#: Those that change files.
EDITORS = range(0, WORKERS, 2)
COST = "0.01"


def the_plan() -> Plan:
    """Edits one file in many places, makes others, spends, and fails sometimes."""
    nodes = [Node(name="first", actor=ScriptedActor((WriteStep("first.txt", "1\n"),)))]
    for number in range(WORKERS):
        edits = [
            EditStep("list.txt", f"slot-{number};", f"slot-{number};done;"),
            WriteStep(f"out/{number}.txt", f"{number}\n"),
        ]
        steps = [SpendStep(COST), SleepStep(0.002), PrintStep(f"{number}")]
        if number % 9 == 4:
            steps.insert(1, FailStep("it happens", attempts=1))
        actor = ScriptedActor((*(edits if number in EDITORS else ()), *steps))
        nodes.append(Node(name=f"w{number}", actor=actor, needs=("first",)))
    names = tuple(f"w{number}" for number in range(WORKERS))
    nodes.append(Node(name="quiet", actor=ScriptedActor((PrintStep("no file"),)), needs=names))
    nodes.append(
        Node(
            name="last",
            actor=ScriptedActor((PrintStep("${nodes.w0.output}${nodes.quiet.output}"),)),
            needs=("quiet",),
        )
    )
    return Plan(goal="Survive", nodes=tuple(nodes), at_once=4)


def plant(root: Path) -> None:
    root.mkdir()
    # Far enough from each other that the edits are no conflicts.
    (root / "list.txt").write_text("".join(f"slot-{n};\n1\n2\n3\n4\n" for n in range(WORKERS)))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying(function, number: int, *, after: bool = False, when=lambda *_, **__: True):
    """Return the function with a death before or after its n-th call that counts."""
    calls = itertools.count(1)

    def call(*args, **options):
        last = when(*args, **options) and next(calls) == number
        if last and not after:
            die()
        result = function(*args, **options)
        if last:
            die()
        return result

    return call


def is_about(state):
    return lambda _, *records, **__: any(one.state is state for one in records)


POINTS = {
    "started": (SqliteRunBook, "put", {"when": is_about(NodeState.RUNNING)}),
    "sealed": (SqliteRunBook, "put", {"when": is_about(NodeState.MERGING)}),
    "recorded": (WorkspaceBenches, "merge", {}),
    "merged": (WorkspaceBenches, "merge", {"after": True}),
    "before-done": (SqliteRunBook, "put", {"when": is_about(NodeState.DONE)}),
    "done": (SqliteRunBook, "put", {"when": is_about(NodeState.DONE), "after": True}),
    "rejected": (WorkspaceBenches, "reject", {}),
    "before-end": (SqliteRunBook, "end", {}),
    "after-end": (SqliteRunBook, "end", {"after": True}),
}


def merge_before_the_result_is_kept() -> None:
    """Turn this process into a naive runner, which must be caught."""

    def landed(self, made):
        if made.changeset is not None:
            self._crew.workbench.merge(made.changeset)
        done = replace(made, state=NodeState.DONE)
        self._book.put(done)
        return Outcome(self._order, done)

    NodeAttempt._landed = landed


def without_fence() -> None:
    """Turn this process into a naive runner, which must be caught."""
    plan_journal.check_fence = lambda *_: None


def without_heart() -> None:
    JobHeart._beat = lambda _: None


DEEDS = {
    "merge-first": merge_before_the_result_is_kept,
    "no-fence": without_fence,
    "silent": without_heart,
}


def say(event: object) -> None:
    os.write(1, f"{event}\n".encode())


class Listener:
    """Says every event; after the first node that is finished, it may have to wait."""

    def __init__(self, *, hold: bool) -> None:
        self.hold = hold

    def __call__(self, event: object) -> None:
        say(event)
        if self.hold and isinstance(event, NodeFinished):
            self.hold = False
            sys.stdin.readline()


def main() -> None:
    root, *words = sys.argv[1:]
    told = dict(word.split("=") for word in words if "=" in word)
    for word in words:
        DEEDS.get(word, lambda: None)()
    if "point" in told:
        point, _, number = told["point"].partition(":")
        owner, name, options = POINTS[point]
        setattr(owner, name, dying(getattr(owner, name), int(number), **options))
    options = WorkspaceOptions(sandbox_kind="copy", confinement="off")
    parts = RunParts(lease_s=float(told.get("lease", 10)))
    with (
        Workspace(Path(root), options=options) as workspace,
        Runs(workspace, parts, RunOptions(listener=Listener(hold="hold" in words))) as runs,
    ):
        say("ready")
        try:
            result = runs.run(the_plan(), PLAN_ID)
        except CleverAgentsError as error:
            say(f"refused {error.code}")
            return
    say(f"end {result.state} {result.exit_code}")


if __name__ == "__main__":
    main()
