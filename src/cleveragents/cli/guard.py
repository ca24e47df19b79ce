"""`cleveragents guard`: any program on a sandbox of the tree; what it changed waits for a word."""

from __future__ import annotations

import os
import shlex
import stat
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleveragents.actors.building import build_actor
from cleveragents.application.attempts import AttemptContext, Payer
from cleveragents.application.services.node_rendering import rendered
from cleveragents.cli import output, state
from cleveragents.cli.arguments import amount_of
from cleveragents.cli.fix import answer_to, is_interactive, opened_workspace
from cleveragents.cli.fix_view import counted
from cleveragents.cli.guarded_bench import GuardedBench
from cleveragents.domain.errors import LimitError, RequestError, SandboxError, SetupError
from cleveragents.domain.money import Money
from cleveragents.domain.plan import CommandActor, Node
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.infrastructure.changes.difference import Difference
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.purses import TrackerPurses
from cleveragents.infrastructure.sandbox import confinement as confining
from cleveragents.infrastructure.sandbox.confinement import Confinement
from cleveragents.runs import WorkspaceBenches
from cleveragents.settings import load

if TYPE_CHECKING:
    from argparse import Namespace

    from cleveragents.application.attempts import Purse
    from cleveragents.infrastructure.changes.apply_rows import Applied
    from cleveragents.workspace import Workspace

_NODE: Final = "guard"
_TIMEOUT_S_MAX: Final = 604_800.0
_ANSWERS: Final = {"a": "apply", "apply": "apply", "t": "discard", "throw away": "discard"}


@dataclass(slots=True)
class GuardRun:
    """What became of the program; one for each command, filled in by one thread."""

    plan_id: str = field(default_factory=lambda: f"guard-{uuid.uuid4().hex[:8]}")
    exit_code: int = 0
    #: A limit that it reached, told as such.
    limit: str = ""
    spent: Money = field(default=Money(0))
    changeset: str | None = None
    files: int = 0


def guard(options: Namespace) -> int:
    """Run the program, show what it changed, and apply, keep or throw it away."""
    if not 0 < options.timeout <= _TIMEOUT_S_MAX:
        raise RequestError(
            f"`--timeout` must be more than 0 and up to {_TIMEOUT_S_MAX:.0f} s,"
            f" got {options.timeout:g}"
        )
    env = _variables(options.env or ())
    budget = None if options.budget_usd_max is None else amount_of(options.budget_usd_max)
    run = GuardRun()
    with opened_workspace(_confinement(options)) as workspace:
        bench = WorkspaceBenches(workspace).open(run.plan_id, _NODE, 1, actor=_actor_of(options))
        guarded = GuardedBench(bench, _stdin(), env, is_live=not options.json)
        try:
            _run(workspace, guarded, run, options)
        except KeyboardInterrupt:
            _keep_what_is_there(workspace, guarded, run)
            raise
        finally:
            bench.close()
        if budget is not None and run.spent > budget:
            run.limit = f"it told of {run.spent}, more than {budget}"
        applied, word = _decide(workspace, run, options)
    _tell_end(run, applied, word, options)
    return LimitError.exit_code if run.limit else run.exit_code


def _run(workspace: Workspace, bench: GuardedBench, run: GuardRun, options: Namespace) -> None:
    """Run the program to its end or to a limit, and put what it changed into the store."""
    with DurableCostTracker(workspace.changes.store) as tracker:

        def count(amount: Money) -> None:
            run.spent += amount

        payer = Payer(plan_id=run.plan_id, node=_NODE, actor=_actor_of(options))
        attempt = _attempt(bench, TrackerPurses(tracker).open(payer, count), run, options)
        assert attempt.node.actor is not None, "the node was made with one"
        try:
            build_actor(attempt.node.actor).run(attempt)
        except SandboxError as error:
            # Whatever its code, what the program did is the user's to judge.
            if error.code == "CA5005":
                run.limit = f"it reached its limit of {options.timeout:g} s, or of output"
            elif error.code != "CA5201":
                raise
            run.exit_code = error.facts.get("exit_code", 1)
    _seal(workspace, bench, run)


def _attempt(
    bench: GuardedBench, purse: Purse, run: GuardRun, options: Namespace
) -> AttemptContext:
    words = tuple(word.replace("${", "$${") for word in options.program)
    node = Node(
        name=_NODE,
        actor=CommandActor(words),
        timeout_s=options.timeout,
        network=options.network,
        folder=os.path.relpath(Path.cwd(), state.root()),
    )
    return AttemptContext(
        plan_id=run.plan_id,
        goal=shlex.join(options.program),
        # Arguments mean themselves; they are no templates.
        node=rendered(node, {}, {}),
        instance=_NODE,
        attempt=1,
        inputs={},
        bench=bench,
        purse=purse,
        stop=StopSignal(),
        log=lambda _: None,
    )


def _seal(workspace: Workspace, bench: GuardedBench, run: GuardRun) -> None:
    run.changeset = bench.seal()
    if run.changeset is not None:
        run.files = len(WorkspaceBenches(workspace).paths(run.changeset))


def _keep_what_is_there(workspace: Workspace, bench: GuardedBench, run: GuardRun) -> None:
    _seal(workspace, bench, run)
    if run.changeset is not None and run.files:
        workspace.merge(run.changeset)
        output.talk(f"interrupted: {counted(run.files)} kept as plan `{run.plan_id}`")
    else:
        output.talk("interrupted: nothing was changed")


# -- what becomes of the changes -----------------------------------------------------------


def _decide(workspace: Workspace, run: GuardRun, options: Namespace) -> tuple[Applied | None, str]:
    """Return the apply, if there is one, and the word for what was done."""
    changes = workspace.changes
    assert run.changeset is not None, "a program that ran has a changeset"
    if not run.files:
        changes.trees.reject(run.changeset)
        return None, "unchanged"
    (row,) = (one for one in changes.trees.merges(run.plan_id) if one.changeset_id == run.changeset)
    difference = Difference(changes.repository, row.start, row.theirs)
    if not options.json:
        output.talk(difference.summary().decode("utf-8", "replace").rstrip())
    word = _wish(run, options)
    if word == "discard":
        changes.trees.reject(run.changeset)
        return None, word
    workspace.merge(run.changeset)
    return (changes.applies.apply(run.plan_id) if word == "apply" else None), word


def _wish(run: GuardRun, options: Namespace) -> str:
    if options.discard:
        return "discard"
    # What went wrong is never applied without a look.
    if options.yes:
        return "apply" if not run.limit and run.exit_code == 0 else "keep"
    if options.json or not is_interactive():
        return "keep"
    answer = answer_to(f"{_ending(run)}: [a]pply, [k]eep for later, or [t]hrow away?")
    return _ANSWERS.get(answer, "keep")


def _tell_end(run: GuardRun, applied: Applied | None, word: str, options: Namespace) -> None:
    if options.json:
        output.record(_record(run, applied, word))
        return
    output.talk(f"guard  {_ending(run)}; {_cost(run)}")
    if word == "unchanged":
        output.talk("It changed no file")
    elif word == "discard":
        output.talk(f"Threw {counted(run.files)} away")
    elif applied is not None:
        output.talk(f"Applied {counted(applied.files)}")
        output.talk(f"\nhint: Run `cleveragents undo {applied.id}` to take it back")
    else:
        output.talk(f"Kept {counted(run.files)} as plan `{run.plan_id}`; your tree is as it was")
        output.talk(f"\nhint: Run `cleveragents changes apply {run.plan_id}` to apply it")


def _record(run: GuardRun, applied: Applied | None, word: str) -> dict[str, Any]:
    return {
        "kind": "guard",
        "plan": run.plan_id,
        "exit_code": run.exit_code,
        "limit": run.limit or None,
        "files": run.files,
        "spent": None if run.spent == Money(0) else str(run.spent),
        "changes": word,
        "applied": applied and applied.id,
    }


def _ending(run: GuardRun) -> str:
    return run.limit or f"exit code {run.exit_code}"


def _cost(run: GuardRun) -> str:
    # What nobody told is not known, which is not the same as nothing.
    return "it told of no cost" if run.spent == Money(0) else f"it told of {run.spent}"


# -- what the program is given -------------------------------------------------------------


def _confinement(options: Namespace) -> Confinement:
    """Return how the program is confined; refuse where only its good will kept it on its leash."""
    chosen = Confinement(load()[0].confinement)
    if options.unconfined or chosen is Confinement.OFF:
        by = "`--unconfined`" if options.unconfined else "the setting `confinement = off`"
        output.talk(
            f"warning[CA5006]: The program runs unconfined, by {by}: it can change any file of"
            " yours, and use the network"
        )
        return Confinement.OFF
    found = confining.probe_bubblewrap()
    if isinstance(found, str):
        program = shlex.join(["cleveragents", "guard", "--unconfined", "--", *options.program])
        raise SetupError(
            "The program cannot be kept away from your files here: " + found,
            code="CA5006",
            facts={"not started": shlex.join(options.program)},
            hint="Install bubblewrap and allow user namespaces, or, if you trust the program,"
            f" run `{program}`",
        )
    return Confinement.REQUIRED


def _actor_of(options: Namespace) -> str:
    return f"command:{options.program[0]}"[:200]


def _variables(names: list[str] | tuple[()]) -> dict[str, str]:
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise RequestError(f"`--env` must name a variable that is set, got {missing[0]!r}")
    return {name: os.environ[name] for name in names}


def _stdin() -> bytes:
    """Return what is piped in; a terminal stays with the user, and is not passed on."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return b""
    if stat.S_ISFIFO(mode):
        output.talk("guard  waits for the end of its standard input, then starts the program")
    elif not stat.S_ISREG(mode):
        return b""
    return sys.stdin.buffer.read()
