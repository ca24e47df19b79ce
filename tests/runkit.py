"""A world for runs of plans: actors are functions, files are a dict, and the journal is real."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from itertools import count

from cleveragents.application.attempts import ActorResult
from cleveragents.application.services.attempt_order import Crew
from cleveragents.application.services.error_recovery_service import (
    ErrorRecoveryService,
    RecoverySettings,
)
from cleveragents.application.services.plan_runner import PlanRunner
from cleveragents.application.services.recovery_policy import RecoveryPolicy
from cleveragents.application.services.run_options import RunOptions
from cleveragents.domain.command import Finished
from cleveragents.domain.conflict import Conflict, MergeOutcome, Side
from cleveragents.domain.errors import PlanError
from cleveragents.domain.plan import Node, Plan, PythonActor
from cleveragents.infrastructure.plan_journal import SqliteRunJournal
from cleveragents.infrastructure.purses import TrackerPurses
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal

#: Retries wait next to nothing.
POLICY = RecoveryPolicy(backoff_s=0.001, backoff_s_max=0.002)


class FunctionActor:
    """Calls a function with the attempt; what it returns is the output."""

    def __init__(self, function, fall_back=None):
        self._function = function
        if fall_back is not None:
            self.fall_back = FunctionActor(fall_back)

    def run(self, attempt):
        result = self._function(attempt)
        return result if isinstance(result, ActorResult) else ActorResult(result)


class DictFiles:
    def __init__(self, files):
        self._files = files

    def read(self, path):
        return self._files[path]

    def write(self, path, data, mode=None, *, tool_call=None):  # noqa: ARG002  # as the protocol
        self._files[path] = data


class DictBench:
    """A bench over a copy of the tree; `checks` says what commands return."""

    def __init__(self, world, about):
        self.world = world
        self.about = about
        self.mine = None
        self.sealed = None
        self.closed = False

    @property
    def files(self):
        if self.mine is None:
            self.base = dict(self.world.tree)
            self.mine = dict(self.base)
        return DictFiles(self.mine)

    def run(self, command, *, stop=None, on_output=None):  # noqa: ARG002  # as the protocol
        return self.world.command(command, stop)

    def changed(self):
        seen = self.world.tree if self.mine is None else self.mine
        return {path: data for path, data in seen.items() if isinstance(data, bytes)}

    def seal(self):
        if self.sealed is None and self.mine is not None:
            self.sealed = f"c-{next(self.world.numbers)}"
            changed = {
                path: data for path, data in self.mine.items() if self.base.get(path) != data
            }
            self.world.sealed[self.sealed] = (self.base, changed)
            self.world.states[self.sealed] = "sealed"
        return self.sealed

    def close(self):
        self.closed = True


def passes(*_):
    return Finished(0, None, b"", b"", 0.0)


@dataclass
class DictWorkbench:
    """A workbench whose tree is a dict; a path that others changed since is a conflict."""

    tree: dict = field(default_factory=dict)
    sealed: dict = field(default_factory=dict)
    states: dict = field(default_factory=dict)
    begun: list = field(default_factory=list)
    benches: list = field(default_factory=list)
    merges: list = field(default_factory=list)
    salvaged: list = field(default_factory=list)
    numbers: count = field(default_factory=lambda: count(1))
    command: object = passes
    resolved: set = field(default_factory=set)

    def __post_init__(self):
        self.lock = threading.Lock()

    def check_commands(self):
        """Let every command run."""

    def begin(self, plan_id):
        self.begun.append(plan_id)

    def open(self, plan_id, node, attempt, *, actor):
        bench = DictBench(self, (plan_id, node, attempt, actor))
        self.benches.append(bench)
        return bench

    def paths(self, changeset_id):
        return tuple(sorted(self.sealed[changeset_id][1]))

    def merge(self, changeset_id):
        with self.lock:
            state = self.states[changeset_id]
            if state == "rejected":
                raise PlanError("over", code="CA4108")
            if state == "merged":
                return MergeOutcome(changeset_id, "merged", "head")
            base, changed = self.sealed[changeset_id]
            clashes = [
                path
                for path in changed
                if self.tree.get(path) != base.get(path) and changeset_id not in self.resolved
            ]
            if clashes:
                self.states[changeset_id] = "conflicted"
                found = tuple(
                    Conflict(
                        id=f"k-{path}",
                        plan_id="p",
                        path=path,
                        kind="contents",
                        base=Side(),
                        ours=Side(),
                        theirs=Side(),
                    )
                    for path in clashes
                )
                return MergeOutcome(changeset_id, "conflicted", "head", found)
            self.tree.update(changed)
            self.states[changeset_id] = "merged"
            self.merges.append(changeset_id)
            return MergeOutcome(changeset_id, "merged", "head")

    def reject(self, changeset_id):
        if self.states[changeset_id] != "merged":
            self.states[changeset_id] = "rejected"

    def salvage(self, plan_id, kept):
        self.salvaged.append((plan_id, frozenset(kept)))


class World:
    """One store, one dict of files, and actors by name; `runs` counts attempts of each node."""

    def __init__(self, store, tracker, **options):
        self.store = store
        self.tracker = tracker
        self.workbench = DictWorkbench()
        self.actors = {}
        self.fall_backs = {}
        self.events = []
        self.attempts = []
        self.errors = ErrorRecoveryService(
            RecoverySettings(policy=POLICY), journal=SqliteErrorJournal(store), chance=lambda: 0.0
        )
        self.journal = SqliteRunJournal(store)
        self.options = {"listener": self.events.append, "grace_s": 0.05, **options}

    @property
    def runner(self):
        crew = Crew(
            workbench=self.workbench,
            purses=TrackerPurses(self.tracker),
            errors=self.errors,
            build_actor=self.build,
        )
        return PlanRunner(crew, self.journal, RunOptions(**self.options))

    def build(self, value):
        name = value.function.partition(":")[2]

        def counted(attempt):
            self.attempts.append((attempt.instance, attempt.attempt))
            return self.actors.get(name, lambda _: name)(attempt)

        return FunctionActor(counted, self.fall_backs.get(name))

    def ran(self, node):
        return [number for name, number in self.attempts if name == node]

    def told(self, kind):
        return [one for one in self.events if isinstance(one, kind)]


def node(name, *needs, **options):
    """A node whose actor is the function of its name, hyphens as underscores."""
    actor = PythonActor(f"kit:{name.replace('-', '_')}")
    return Node(name=name, actor=actor, needs=needs, **options)


def plan(*nodes, **options):
    return Plan(goal="try it", nodes=nodes, **options)
