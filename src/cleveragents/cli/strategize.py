"""`cleveragents run "goal"`: a model makes a plan of a goal; a person accepts it; then it runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import uuid
from argparse import Namespace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleveragents.actors.llm.planner import Planner, Wish, plan_text, planning, settled
from cleveragents.actors.llm.prompting import Prompts
from cleveragents.application.run_journal import PlanState
from cleveragents.cli import output, state
from cleveragents.cli.arguments import amount_of
from cleveragents.cli.question import person_is_there, read_line
from cleveragents.cli.run import PLANNED_AS, desk_for, lived_through, run_file
from cleveragents.cli.view_model import RunModel
from cleveragents.domain.errors import ConflictError, RequestError, SetupError
from cleveragents.domain.money import Money
from cleveragents.domain.plan import ApplyMode
from cleveragents.infrastructure.plan_files import dump, load_plan, parse_plan, reference
from cleveragents.workspace import made_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cleveragents.application.attempts import Actor
    from cleveragents.application.services.run_result import RunResult
    from cleveragents.cli.run_end import RunEnd
    from cleveragents.domain.plan import Plan

_GOAL_CHARS_MAX: Final = 10_000
_NAME_CHARS_MAX: Final = 40
_QUESTION: Final = "[r]un it, [e]dit it first, or [l]eave it for later?"
#: The parts of plan files that a planner may use.
_DESCRIBED: Final = frozenset(
    {"Plan", "Defaults", "Node", "ForEach", "ContextWish", "Check", "CommandActor", "LlmActor"}
)
#: What `resume` is not told and `run` is.
_USUAL: Final = ("set", "at_once", "deadline", "on_failure", "out")


def strategize(options: Namespace) -> int:
    """Let a model plan a goal, show and keep the plan, and run it once it is accepted."""
    wish = _wish_of(options)
    _refuse_existing(options.out)
    orders = f"{Prompts(state.root()).text('planner')}\n\n{_description()}"
    plan = planning(wish, orders, may_ask=_is_asked(options))
    # The session of all that comes of this goal is named after the plan that began it.
    plan_id = f"p-{uuid.uuid4().hex[:8]}"
    with desk_for(Path.cwd(), options, _wrap(wish)) as desk:
        desk.check(plan)
        desk.runs.add(plan, plan_id, session=plan_id, folder=".")
        model = RunModel(plan_id, plan, budget=wish.budget)
        end = lived_through(desk, lambda: desk.runs.resume(plan_id), model, options)
    return _went_on(end, wish, options)


def go_on(model: RunModel, options: Namespace, budget: Money | None) -> int:
    """Go on with the planning of a goal, after a stop, a death or a failure."""
    wish = Wish.of(model.plan, model.budget)
    with desk_for(Path.cwd(), options, _wrap(wish)) as desk:
        desk.check(model.plan, model.kept)

        def start() -> RunResult:
            return desk.runs.resume(model.plan_id, budget_usd_max=budget)

        end = lived_through(desk, start, model, options)
    return _went_on(end, wish, Namespace(**{**dict.fromkeys(_USUAL), **vars(options)}))


# -- before ------------------------------------------------------------------------------------


def _wish_of(options: Namespace) -> Wish:
    goal = options.plan.strip()
    if not 1 <= len(goal) <= _GOAL_CHARS_MAX:
        raise RequestError(
            f"A goal must have 1 to {_GOAL_CHARS_MAX:,} characters, got {len(goal):,}"
        )
    if options.model is None:
        raise RequestError(
            f"`{goal[:60]}` is no plan file, so it is a goal, and a goal needs `--model`",
            hint="Run `cleveragents run"
            f" {shlex.quote(goal[:60])} --model anthropic:claude-sonnet-5-5`,"
            " or name a plan file that is there",
        )
    budget = None if options.budget_usd_max is None else amount_of(options.budget_usd_max)
    return Wish(goal=goal, model=options.model, base_url=options.base_url, budget=budget)


def _refuse_existing(out: str | None) -> None:
    """Refuse before money is spent what could not be kept."""
    if out is None:
        return
    if not out.endswith((".yaml", ".yml")):
        raise RequestError(f"`--out` must end in .yaml or .yml, got {out!r}")
    if os.path.lexists(out) or not Path(out).absolute().parent.is_dir():
        raise RequestError(f"`--out` must name a new file in a folder that is there, got {out!r}")


def _description() -> str:
    """Return what a planner must know of plan files, which it pays for with each turn."""
    head, *sections = re.split(r"(?m)^(?=## )", reference())
    known = [one for one in sections if one.partition("\n")[0].removeprefix("## ") in _DESCRIBED]
    return head + "".join(known)


def _wrap(wish: Wish) -> Callable[[Actor], Actor]:
    return lambda actor: Planner(actor, lambda answer: _read(answer, wish, None))


def _read(answer: str, wish: Wish, left: Money | None) -> Plan:
    return settled(parse_plan(plan_text(answer)), wish, left)


# -- after -------------------------------------------------------------------------------------


def _went_on(end: RunEnd, wish: Wish, options: Namespace) -> int:
    """Keep the plan that was made, and run it if it is accepted; or tell why there is none."""
    if end.result.state is not PlanState.DONE:
        if options.json:
            output.record(end.record())
        else:
            end.tell()
        return end.exit_code
    spent = end.model.spent
    left = None if wish.budget is None else Money(max(0, wish.budget.pico - spent.pico))
    (node,) = end.result.nodes.values()
    plan = _read(str(node.output), wish, left)
    head = f"{PLANNED_AS}{end.result.plan_id} by {wish.model}, for {spent}\n"
    try:
        path = _keep(plan, head, options.out)
    except OSError as error:
        place = error.filename or options.out or "the folder of plans"
        raise SetupError(
            f"The plan cannot be kept in `{place}`: {error.strerror}",
            # Planned is planned: nothing is asked, or paid, again.
            hint="See to that, then run"
            f" `{shlex.join(['cleveragents', 'resume', end.result.plan_id])}`",
        ) from None
    return _decided(path, end, options)


def _keep(plan: Plan, head: str, out: str | None) -> Path:
    """Write the plan file; one that is there already is never replaced."""
    text = head + dump(plan)
    for path in _places(plan, out):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        return path
    raise AssertionError("unreachable")


def _places(plan: Plan, out: str | None) -> Iterator[Path]:
    if out is not None:
        yield Path(out)
    folder = made_home(state.root()) / "plans"
    folder.mkdir(exist_ok=True)
    words = re.sub(r"[^a-z0-9]+", "-", plan.goal.lower())[:_NAME_CHARS_MAX].strip("-") or "plan"
    yield folder / f"{words}.yaml"
    yield from (folder / f"{words}-{number}.yaml" for number in count(2))


def _decided(path: Path, end: RunEnd, options: Namespace) -> int:
    """Show the plan, ask about it, and run it unless it is left."""
    shown = os.path.relpath(path)
    if options.json:
        output.record(
            {
                "kind": "planned",
                "plan": end.result.plan_id,
                "file": str(path),
                "spent_usd": f"{end.model.spent.usd:f}",
            }
        )
    else:
        output.data(path.read_text(encoding="utf-8").rstrip("\n"))
        output.talk(f"\nplanned for {end.model.spent}; the plan is kept in {shown}")
    accepted = options.apply == ApplyMode.AUTO or (_is_asked(options) and _accepted(path))
    if not accepted:
        if not options.json:
            output.talk(f"\nhint: Run `{shlex.join(['cleveragents', 'run', shown])}`")
        return ConflictError.exit_code
    # What is left of the budget stands in the file.
    return run_file(path, Namespace(**{**vars(options), "budget_usd_max": None}))


def _is_asked(options: Namespace) -> bool:
    return person_is_there() and not options.json and options.apply != ApplyMode.AUTO


def _accepted(path: Path) -> bool:
    """Ask until the plan is to be run or left; what was edited must keep the rules."""
    while True:
        output.talk(_QUESTION)
        line = read_line(lambda: False)
        answer = "l" if line is None else line.strip().lower()
        if answer in {"l", "leave"}:
            return False
        if answer in {"e", "edit"}:
            _edit(path)
        if answer in {"r", "run"} and _is_right(path):
            return True


def _edit(path: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        subprocess.run([*shlex.split(editor), str(path)], check=False)  # the user's own editor
    except (OSError, ValueError) as error:
        output.talk(f"`{editor}` cannot be started: {error}; set `EDITOR`, or edit {path}")
        return
    if _is_right(path):
        output.data(path.read_text(encoding="utf-8").rstrip("\n"))


def _is_right(path: Path) -> bool:
    try:
        load_plan(path)
    except RequestError as error:
        output.error(error, as_json=False)
        return False
    return True
