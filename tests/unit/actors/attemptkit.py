"""Attempts on real benches: a sandbox, a changeset and a ledger of one small tree."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field

from cleveragents.application.attempts import AttemptContext
from cleveragents.domain.budget import Scopes
from cleveragents.domain.money import Money
from cleveragents.domain.plan import Node, PrintStep, ScriptedActor
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.providers.cost_tracker import CostTracker
from cleveragents.workspace import Workspace

IDLE = ScriptedActor((PrintStep("nothing"),))


class RealBench:
    """A bench over one attempt of a workspace."""

    def __init__(self, attempt):
        self._attempt = attempt
        self.commands = []

    @property
    def files(self):
        return self._attempt.files

    def run(self, command, *, stop=None, on_output=None):
        self.commands.append(command)
        runner, place = self._attempt._runner, self._attempt.sandbox.place
        return runner.run(command, place, stop=stop, on_output=on_output)

    def changed(self):
        return {}

    def seal(self):
        return self._attempt.changeset_id


@dataclass
class RealPurse:
    """A purse on the books of a tracker; what was recorded without a promise is kept beside."""

    tracker: CostTracker = field(default_factory=CostTracker)
    bills: list = field(default_factory=list)

    def reserve(self, amount, *, model=None):
        return self.tracker.reserve(amount, Scopes(plan="p-1", model=model))

    def record(self, amount, *, usage=None, model=None):
        self.bills.append((Money.of(amount), usage, model))
        self.tracker.record_usage(amount, Scopes(plan="p-1", model=model))


class World:
    """One tree with its workspace; `attempt` gives contexts whose changes can be looked at."""

    def __init__(self, workspace):
        self.workspace = workspace
        self.logged = []
        self.purse = RealPurse()
        self.changeset_id = None

    @contextmanager
    def attempt(self, node=None, **given):
        node = node or Node(name="work", actor=IDLE)
        number = given.get("attempt", 1)
        with self.workspace.attempt("p-1", given.get("instance", node.name), number) as opened:
            self.changeset_id = opened.changeset_id
            yield self.context(RealBench(opened), node, **given)

    def context(self, bench, node, **given):
        known = {
            "plan_id": "p-1",
            "goal": "Tidy up",
            "node": node,
            "instance": node.name,
            "attempt": 1,
            "inputs": dict(node.inputs),
            "bench": bench,
            "purse": self.purse,
            "stop": StopSignal(),
            "log": self.logged.append,
        }
        return AttemptContext(**{**known, **given})

    def entries(self):
        return self.workspace.changes.changesets.get(self.changeset_id).entries


def planted(root):
    """Return a workspace on a tree with files of many kinds, where plan `p-1` has begun."""
    root.mkdir()
    files = {
        "src/app.py": b"import os\n\n\ndef main():\n    return 1\n",
        "src/twin.py": b"x = 1\ny = 1\nx = 1\n",
        "windows.txt": b"one\r\ntwo\r\nthree\r\n",
        "latin.txt": b"caf\xe9\nplain\n",
        "picture.bin": b"\x89PNG\0\0",
        "empty.txt": b"",
        "no_end.txt": b"first\nlast",
    }
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    workspace = Workspace(root)
    workspace.begin("p-1")
    return workspace
