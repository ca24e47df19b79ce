"""Questions for context about a small tree, asked by users and by actors."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from behave import given, then, when

from cleveragents import (
    CircuitBreaker,
    Container,
    ContextPipeline,
    ContextRequest,
    ParallelStrategyExecutor,
    Settings,
)
from cleveragents.application.attempts import ActorResult
from cleveragents.application.services.acms_pipeline import ExecutionLimits
from cleveragents.bootstrap import usual_strategies
from cleveragents.domain.plan import Node, Plan, PythonActor
from cleveragents.runs import RunParts, Runs
from cleveragents.testing import FrozenClock, Gate
from cleveragents.workspace import Workspace, WorkspaceOptions

if TYPE_CHECKING:
    from cleveragents.application.services.acms_pipeline import Context

#: Never reached, unless the scenario moves the clock.
LIMITS = ExecutionLimits(timeout_s=60.0, deadline_s=600.0)


class Hanging:
    """A strategy that gives no answer until it is well, or the scenario is over."""

    name = "hanging"
    timeout_s = 5.0

    def __init__(self, clock: FrozenClock) -> None:
        self.clock = clock
        self.gate = Gate()
        self.is_well = False

    def find(self, *_: object) -> tuple[()]:
        if not self.is_well:
            self.clock.advance(self.timeout_s + 1)
            self.gate.pass_through()
        return ()


class Calls:
    """An actor that calls a function."""

    def __init__(self, function) -> None:
        self._function = function

    def run(self, attempt) -> ActorResult:
        self._function(attempt)
        return ActorResult()


def definition(name: str) -> str:
    return f"def {name}(amount):\n    return amount\n"


@dataclass
class CodeWorld:
    """A tree, a pipeline with an index on it, and what was answered last."""

    opened: ExitStack = field(default_factory=ExitStack)
    clock: FrozenClock = field(default_factory=FrozenClock)
    answers: list[Context] = field(default_factory=list)
    task: str = ""
    hanging: Hanging | None = None
    root: Path = field(init=False)
    services: Container = field(init=False)
    executor: ParallelStrategyExecutor = field(init=False)

    def __post_init__(self) -> None:
        folder = Path(self.opened.enter_context(TemporaryDirectory()))
        self.root = folder / "tree"
        self.root.mkdir()
        self.services = self.container(folder / "index")
        breaker = CircuitBreaker(3, pause_s=30.0, clock=self.clock)
        self.executor = self.opened.enter_context(
            ParallelStrategyExecutor(8, breaker=breaker, limits=LIMITS, clock=self.clock)
        )

    def container(self, index: Path) -> Container:
        settings = Settings(context_index_folder=str(index))
        return self.opened.enter_context(Container(settings))

    @property
    def pipeline(self) -> ContextPipeline:
        beside = () if self.hanging is None else (self.hanging,)
        strategies = (*beside, *usual_strategies(self.services.index))
        return ContextPipeline(self.executor, strategies)

    def ask(self, task: str | None = None, tokens_max: int = 8000) -> None:
        self.task = task or self.task
        request = ContextRequest(self.task, self.root, (), tokens_max)
        self.answers.append(self.pipeline.build(request))

    def status(self) -> str:
        return str(self.answers[-1].reports[0].status)

    def close(self) -> None:
        if self.hanging is not None:
            self.hanging.gate.open()
        self.opened.close()


@given('a tree in which "{one}" defines "{first}" and "{other}" defines "{second}"')
def a_tree(context, one, first, other, second):
    context.code = CodeWorld()
    context.add_cleanup(context.code.close)
    for path, name in ((one, first), (other, second)):
        (context.code.root / path).write_text(definition(name))


@given("a strategy that hangs")
def a_strategy_that_hangs(context):
    context.code.hanging = Hanging(context.code.clock)


@given('a user has asked for the context of "{task}"')
@when('a user asks for the context of "{task}"')
def a_user_asks(context, task):
    context.code.ask(task)


@given('a user has asked {times:d} times for the context of "{task}"')
def a_user_has_asked(context, times, task):
    for _ in range(times):
        context.code.ask(task)


@when('a user asks twice for the context of "{task}"')
def a_user_asks_twice(context, task):
    context.code.ask(task)
    context.code.ask(task)


@when('a user asks for the context of "{task}" within {tokens:d} tokens')
def a_user_asks_within(context, task, tokens):
    context.code.ask(task, tokens)


@when('"{path}" is edited and put back, and the user asks again')
def is_edited_and_put_back(context, path):
    code = context.code
    file = code.root / path
    before = file.read_text()
    file.write_text("def settle_everything():\n    return 'invoice'\n")
    code.pipeline.build(ContextRequest(code.task, code.root))
    file.write_text(before)
    code.ask()


@when('"{path}" is made, which defines "{name}", and the user asks again')
def is_made(context, path, name):
    (context.code.root / path).write_text(definition(name))
    context.code.ask()


@when('an actor writes "{path}", which defines "{name}", and asks for "{task}"')
def an_actor_writes_and_asks(context, path, name, task):
    code = context.code

    def act(attempt):
        attempt.files.write(path, definition(name).encode())
        code.answers.append(attempt.find_context(ContextRequest(task, code.root)))

    parts = RunParts(build_actor=lambda _: Calls(act), find_context=code.pipeline.build)
    options = WorkspaceOptions(sandbox_kind="copy", confinement="off")
    plan = Plan(goal="refunds", nodes=(Node(name="write", actor=PythonActor("its:actor")),))
    with Workspace(code.root, options=options) as workspace, Runs(workspace, parts) as runs:
        result = runs.run(plan)
    assert result.exit_code == 0, result.error


@when("it is well again, and {seconds:d} seconds pass, and the user asks again")
def it_is_well_again(context, seconds):
    context.code.hanging.is_well = True
    context.code.clock.advance(seconds)
    context.code.ask()


@then("both answers are the same text")
def both_answers_are_the_same(context):
    first, second = (one.render() for one in context.code.answers[-2:])
    assert first == second
    assert first


@then("a user who never asked before gets that text too")
def a_new_user_gets_that_text(context):
    code = context.code
    fresh = code.container(code.root.parent / "other-index")
    request = ContextRequest(code.task, code.root)
    assert fresh.pipeline.build(request).render() == code.answers[-1].render()


@then('the best file is "{path}"')
def the_best_file_is(context, path):
    answer = context.code.answers[-1]
    assert answer.files[0] == path, answer.files
    assert answer.fragments[0].path == path


@then('the tree of the user has no "{path}"')
def the_tree_has_no(context, path):
    assert not (context.code.root / path).exists()


@then("the context has at most {tokens:d} tokens")
def the_context_has_at_most(context, tokens):
    assert 0 < context.code.answers[-1].tokens <= tokens


@then("the strategy is said to be late")
def the_strategy_is_late(context):
    assert context.code.status() == "timed_out"


@then("the strategy is said to be skipped")
def the_strategy_is_skipped(context):
    assert context.code.status() == "skipped"


@then("the strategy is said to be fine")
def the_strategy_is_fine(context):
    assert context.code.status() == "ok"
