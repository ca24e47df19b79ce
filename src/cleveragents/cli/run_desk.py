"""Where a run is lived through: shown as it goes, asked about, and stopped by Ctrl-C.

The plan runs in a thread of its own. This one owns the terminal, and hears of everything by a
queue, so that no view ever holds the work up.
"""

from __future__ import annotations

import queue
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from cleveragents.actors.building import ActorParts, build_actor, check_actor
from cleveragents.application.run_journal import PlanState
from cleveragents.application.services.attempt_order import Answer
from cleveragents.application.services.run_options import RunOptions
from cleveragents.bootstrap import Container, Listeners, Parts
from cleveragents.cli import question as person
from cleveragents.cli import state
from cleveragents.cli.stored_plans import files_in
from cleveragents.domain.event import Notice
from cleveragents.domain.plan_actors import CommandActor
from cleveragents.domain.run_events import NodeFinished
from cleveragents.runs import RunParts, Runs
from cleveragents.settings import load
from cleveragents.workspace import Workspace, WorkspaceOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from cleveragents.application.attempts import Actor
    from cleveragents.application.run_journal import NodeRecord
    from cleveragents.application.services.attempt_order import Question
    from cleveragents.application.services.plan_run import PlanRun
    from cleveragents.application.services.run_result import RunResult
    from cleveragents.cli.plain_view import View
    from cleveragents.domain.plan import Plan
    from cleveragents.domain.plan_actors import Actor as ActorValue
    from cleveragents.domain.run_events import RunEvent

TICK_S: Final = 0.1

_FIRST: Final = "stopping: what runs is finished first; press Ctrl-C again to stop at once"
_SECOND: Final = "stopping at once: attempts that run now are run again when you go on"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, and where its answer is waited for."""

    question: Question
    answer: queue.SimpleQueue[Answer] = field(default_factory=queue.SimpleQueue)


class _Ended:
    """The run is over."""


_Message: TypeAlias = "tuple[RunEvent, float] | Notice | _Asked | _Ended | str"


class Stops:
    """How often the user pressed Ctrl-C: each time the run is asked once, the first time softly.

    `ask` is a signal handler, for one thread only, the main one; the run is opened in another:
    whoever takes a wish from the queue delivers it, so none is lost and none counts twice.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self.count = 0
        self._say = say
        self._run: PlanRun | None = None
        self._wishes: queue.SimpleQueue[PlanState] = queue.SimpleQueue()

    def on_open(self, run: PlanRun) -> None:
        """Know the run; what was asked before it began counts too."""
        self._run = run
        self._deliver()

    def ask(self, *_: object) -> None:
        """Ask the run to stop."""
        self.count += 1
        self._wishes.put(PlanState.PAUSED)
        self._deliver()
        self._say(_FIRST if self.count == 1 else _SECOND)

    def _deliver(self) -> None:
        while self._run is not None:
            try:
                self._run.request_stop(self._wishes.get_nowait())
            except queue.Empty:
                return


class RunDesk:
    """Everything for runs of this tree, by the settings in force, as a context.

    For its length Ctrl-C asks the run to stop, also one that has not begun yet.
    With `wrap`, each actor is what it makes of the usual one.
    """

    def __init__(
        self,
        modules: Path,
        *,
        with_person: bool,
        wrap: Callable[[Actor], Actor] | None = None,
    ) -> None:
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._stops = Stops(self._inbox.put)
        self._is_left = False
        settings = load()[0]
        with ExitStack() as opened:
            store = opened.enter_context(state.writing())
            services = opened.enter_context(
                Container(settings, Parts(store=store), Listeners(on_notice=self._inbox.put))
            )
            kept_apart = WorkspaceOptions(
                sandbox_kind=settings.sandbox_kind,
                confinement=settings.confinement,
                on_notice=self._inbox.put,
            )
            self.workspace = opened.enter_context(Workspace(state.root(), store, kept_apart))
            self.runs = opened.enter_context(
                Runs(
                    self.workspace,
                    RunParts(
                        build_actor=None if wrap is None else self._wrapping(wrap),
                        actors=ActorParts(price=services.prices.cost_of, modules=modules),
                        prices=services.prices,
                        breaker=services.breaker,
                        limiter=services.limiter,
                        tracker=services.cost_tracker,
                        errors=services.errors,
                        find_context=services.pipeline.build,
                    ),
                    RunOptions(
                        listener=self._hear,
                        on_open=self._stops.on_open,
                        ask=self._ask if with_person else None,
                    ),
                )
            )
            self._opened = opened.pop_all()

    def check(self, plan: Plan, kept: Iterable[NodeRecord] = ()) -> None:
        """Refuse before anything runs what can be known to fail.

        That is a function that is not there, a model that cannot be asked, and a command that must
        be confined and cannot be. Of a plan that goes on, nodes that are over need nothing.
        """
        over = {one.id for one in kept if one.state.lets_dependants_start}
        left = [node for name, node in plan.resolved().items() if name not in over]
        if any(node.check is not None or isinstance(node.actor, CommandActor) for node in left):
            self.workspace.check_commands()
        for node in left:
            assert node.actor is not None, "a plan gives each node an actor"
            check_actor(node.actor, self.runs.actors)

    def follow(self, start: Callable[[], RunResult], view: View) -> RunResult:
        """Run a plan and show it until it is over."""
        with ThreadPoolExecutor(1, thread_name_prefix="ca-run") as pool:
            running = pool.submit(start)
            running.add_done_callback(lambda _: self._inbox.put(_Ended()))
            try:
                self._show(view)
            except BaseException:
                # Nobody sees the run any more: it finishes what runs, and can be resumed.
                self._stops.ask()
                raise
            finally:
                self._is_left = True
        return running.result()

    def __enter__(self) -> Self:
        self._opened.enter_context(_interrupts(self._stops.ask))
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _wrapping(self, wrap: Callable[[Actor], Actor]) -> Callable[[ActorValue], Actor]:
        return lambda value: wrap(build_actor(value, self.runs.actors))

    # -- in the thread of the run ----------------------------------------------------------

    def _hear(self, event: RunEvent) -> None:
        self._inbox.put((event, time.monotonic()))

    def _ask(self, question: Question) -> Answer:
        asked = _Asked(question)
        self._inbox.put(asked)
        while not self._is_left:
            try:
                return asked.answer.get(timeout=TICK_S)
            except queue.Empty:
                continue
        return Answer()

    # -- in the thread of the terminal -----------------------------------------------------

    def _show(self, view: View) -> None:
        while True:
            try:
                message = self._inbox.get(timeout=TICK_S)
            except queue.Empty:
                view.tick(time.monotonic())
                continue
            match message:
                case _Ended():
                    view.close(time.monotonic())
                    return
                case Notice():
                    view.warn(message)
                case str():
                    view.say(message)
                case _Asked():
                    view.close(time.monotonic())
                    message.answer.put(person.ask(message.question, lambda: self._stops.count > 0))
                case _:
                    event, at = message
                    view.take(event, at, self._files(event))
            view.tick(time.monotonic())

    def _files(self, event: RunEvent) -> int | None:
        if not isinstance(event, NodeFinished) or event.changeset is None:
            return None
        with self.workspace.changes.store.read() as connection:
            return files_in(connection, event.changeset)


@contextmanager
def _interrupts(ask: Callable[..., object]) -> Iterator[None]:
    """Turn Ctrl-C into a question to stop, for the length of the block."""
    # Known before `ask` can be called: the signal may come as soon as it is in place.
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
