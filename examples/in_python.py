"""A plan in Python: three greetings at once and a page that needs them, reviewed and applied.

Run it in any folder: `python in_python.py .`
"""

from __future__ import annotations

import sys
from pathlib import Path

from cleveragents.application.services.run_options import RunOptions
from cleveragents.domain.plan import ForEach, Node, Plan, PrintStep, PythonActor, ScriptedActor
from cleveragents.domain.run_events import NodeFinished
from cleveragents.runs import Runs
from cleveragents.workspace import Workspace


def page(attempt):
    """Write what the greeters said into one page; `attempt.inputs` holds their outputs."""
    lines = "".join(f"- {greeting.strip()}\n" for greeting in attempt.inputs["greetings"])
    attempt.files.write("greetings.md", f"# Greetings\n\n{lines}".encode())
    return {"lines": len(attempt.inputs["greetings"])}


PLAN = Plan(
    goal="Greet everybody",
    nodes=(
        Node(
            name="greet",
            for_each=ForEach(over=["Ann", "Ben", "Cem"]),
            actor=ScriptedActor(steps=(PrintStep(text="Hello ${item}"),)),
        ),
        Node(
            name="page",
            needs=("greet",),
            inputs={"greetings": "${nodes.greet.output}"},
            actor=PythonActor(function=f"{Path(__file__).stem}:page"),
        ),
    ),
)


def main(root: Path) -> int:
    """Run the plan on a tree, show its patch, and apply it."""

    def show(event):
        if isinstance(event, NodeFinished):
            print(f"{event.node}: {event.state}")

    with Workspace(root) as workspace, Runs(workspace, options=RunOptions(listener=show)) as runs:
        result = runs.run(PLAN)
        print(result.outputs["page"])
        print(workspace.changes.difference(result.plan_id).patch().decode())
        workspace.changes.applies.apply(result.plan_id)
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
