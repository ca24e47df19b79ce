"""`cleveragents hunt`: read, prove and, if wanted, mend, as a plan that can be resumed."""

from __future__ import annotations

import shlex
import sys
import uuid
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleveragents.application.run_journal import PlanState
from cleveragents.cli import output, state
from cleveragents.cli.arguments import amount_of
from cleveragents.cli.fix import check_of, words_of
from cleveragents.cli.hunt_telling import Telling
from cleveragents.cli.question import confirmed, person_is_there
from cleveragents.cli.run import applied, desk_for, lived_through
from cleveragents.cli.stored_plans import reading_plan
from cleveragents.cli.table import table
from cleveragents.cli.view_model import RunModel
from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.domain.wording import counted
from cleveragents.hunt.candidate import is_shared
from cleveragents.hunt.find import find
from cleveragents.hunt.hunt_plan import Game, HuntOptions, Wishes, hunt_plan, is_hunt

if TYPE_CHECKING:
    from cleveragents.cli.run_end import RunEnd
    from cleveragents.domain.plan import Plan
    from cleveragents.hunt.candidate import Candidate
    from cleveragents.hunt.find import Found

#: What the extra brings: to explore, to make arguments, to mend.
_NEEDED: Final = ("frontrun", "hypothesis", "libcst")
_AT_ONCE_MAX: Final = 64
#: What `resume` is not told and `hunt` is.
_USUAL: Final = {
    **dict.fromkeys(("out", "tests", "baseline", "write_baseline")),
    "format": "text",
    "yes": False,
}


def hunt(options: Namespace) -> int:
    """Find candidates, prove each, tell what came of it; mend and apply if that is wanted."""
    telling = Telling(options)
    if options.report is not None:
        with reading_plan(options.report) as plans:
            plan = plans.model(options.report, with_past=False).plan
            nodes = {one.id: one for one in plans.nodes(options.report)}
        return telling.tell(_refuse_other(options.report, plan), options.report, nodes)
    _refuse_unless_sound(options)
    root = state.root()
    found = find(root, _targets(options.paths, root))
    game = _game(found, options)
    if options.list:
        return _listed(game)
    if not game.candidates:
        output.talk(f"No candidate in {counted(found.modules, 'module')}")
        return telling.tell_nothing(game)
    check = check_of(options) if options.fix else None
    argv = check.argv if check is not None and check.why_not is None else None
    observe = None if options.observe is None else words_of("--observe", options.observe)
    wishes = Wishes(
        fix=options.fix,
        check=argv,
        observe=observe,
        model=options.model,
        base_url=options.base_url,
        budget=None if options.budget is None else amount_of(options.budget),
        at_once=options.at_once,
    )
    plan = hunt_plan(game, _hunt_options(options, root), wishes)
    plan_id = f"hunt-{uuid.uuid4().hex[:8]}"
    model = RunModel(plan_id, plan, budget=wishes.budget)
    return _followed(model, options, telling, is_new=True)


def go_on(model: RunModel, options: Namespace) -> int:
    """Go on with a hunt after a stop or a death: what was judged is not tried again."""
    told = Namespace(**{**_USUAL, **vars(options), "yes": options.apply == "auto"})
    return _followed(model, told, Telling(told), is_new=False)


def _followed(model: RunModel, options: Namespace, telling: Telling, *, is_new: bool) -> int:
    quiet = Namespace(**{**vars(options), "json": False})
    with desk_for(Path.cwd(), options) as desk:
        desk.check(model.plan)
        if is_new:
            desk.runs.add(model.plan, model.plan_id)
        end = lived_through(desk, lambda: desk.runs.resume(model.plan_id), model, quiet)
    if end.result.state is not PlanState.DONE:
        end.tell()
    told = telling.tell(model.plan, model.plan_id, end.result.nodes)
    if end.result.state is not PlanState.DONE:
        return end.exit_code
    if end.files and _is_wanted(end, options):
        # What is mended and in the tree is no bug any more.
        return applied(model.plan_id, options) or int(telling.has_left)
    if end.files:
        name = shlex.quote(model.plan_id)
        output.talk(
            f"\nhint: Run `cleveragents diff {name}` to review, then `cleveragents apply {name}`"
        )
    return told


def _is_wanted(end: RunEnd, options: Namespace) -> bool:
    """Say whether the fixes that hold shall be put into the tree."""
    if options.yes or options.json or not person_is_there():
        return bool(options.yes)
    output.raw(end.summary)
    return confirmed(f"Apply {counted(end.files, 'file')} to your tree?")


def _refuse_unless_sound(options: Namespace) -> None:
    if not 1 <= options.at_once <= _AT_ONCE_MAX:
        raise RequestError(f"`--at-once` must be 1 to {_AT_ONCE_MAX}, got {options.at_once}")
    if not 1 <= options.seconds <= 3600:
        raise RequestError(f"`--seconds` must be 1 to 3600, got {options.seconds:g}")
    if options.most < 1:
        raise RequestError(f"`--most` must be 1 or more, got {options.most}")
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing and options.python is None and not options.list:
        raise SetupError(
            f"`hunt` needs the package `{missing[0]}`, which is not installed",
            code="CA1007",
            facts={"package": missing[0], "extra": "hunt"},
            hint="Run `pip install 'cleveragents[hunt]'`",
        )


def _targets(paths: list[str], root: Path) -> list[str]:
    """Return what to read, seen from the root; refuse what is not there, or outside of it."""
    targets = []
    for given in paths or ["."]:
        path = Path(given).resolve()
        if not path.exists():
            raise RequestError(f"`{given}` is not there", hint="Name a file or folder of the tree")
        if not path.is_relative_to(root.resolve()):
            raise RequestError(f"`{given}` is outside of the tree `{root}`")
        targets.append(path.relative_to(root.resolve()).as_posix())
    return targets


def _game(found: Found, options: Namespace) -> Game:
    named = [
        one
        for one in found.candidates
        if not options.only or any(part in one.name for part in options.only)
    ]
    if options.only and not named:
        raise RequestError(
            f"No candidate has a name that holds {' or '.join(map(repr, options.only))}",
            hint="Run `cleveragents hunt --list --all` to see all",
        )
    # Who is named is wanted; of the others only what something says is shared.
    wanted = [one for one in named if options.all or options.only or is_shared(one)]
    if len(wanted) < len(named):
        output.talk(
            f"{counted(len(named) - len(wanted), 'candidate')} left out that nothing says threads"
            " share, `--all` takes them too"
        )
    if len(wanted) > options.most:
        output.talk(
            f"{len(wanted)} candidates; the {options.most} with the most evidence are tried,"
            " `--most` sets how many"
        )
    skipped = {one.path: one.reason for one in found.skipped}
    return Game(candidates=tuple(wanted[: options.most]), modules=found.modules, skipped=skipped)


def _listed(game: Game) -> int:
    rows = [
        (one.id, one.name, f"{one.path}:{one.line}", ", ".join(one.patterns), _evidence(one))
        for one in game.candidates
    ]
    if rows:
        output.data(table(("id", "candidate", "at", "patterns", "shared because"), rows))
    output.talk(f"{counted(len(rows), 'candidate')} in {counted(game.modules, 'module')}")
    return 0


def _evidence(candidate: Candidate) -> str:
    return candidate.evidence[0].reason if candidate.evidence else "nothing says so"


def _hunt_options(options: Namespace, root: Path) -> HuntOptions:
    python = options.python or sys.executable
    return HuntOptions(
        python=str(Path(python).absolute()) if "/" in python else python,
        budget_s=options.seconds,
        factories=None if options.factories is None else _targets([options.factories], root)[0],
    )


def _refuse_other(plan_id: str, plan: Plan) -> Plan:
    if not is_hunt(plan):
        raise RequestError(
            f"Plan `{plan_id}` is no hunt", hint="Run `cleveragents list` to see all plans"
        )
    return plan
