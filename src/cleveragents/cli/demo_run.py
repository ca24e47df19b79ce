"""The run of the demo: many scripted actors at once on the real services, and the books after it.

Every actor keeps its own list of what it paid and changed.
The report compares these lists with what the services say; it believes neither alone.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.services.recovery_policy import RecoveryPolicy
from cleveragents.bootstrap import Container, Listeners, Parts
from cleveragents.cli import demo_world as world
from cleveragents.domain.budget import Scopes
from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.error_record import Action, ErrorCategory, gate_key
from cleveragents.domain.errors import BudgetExceeded
from cleveragents.domain.money import Money
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.providers.pricing import Price, PriceTable
from cleveragents.settings import Settings
from cleveragents.strategies.explicit_files import ExplicitFiles
from cleveragents.strategies.identifier_match import IdentifierMatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cleveragents.application.services.circuit_breaker import StateChange, Status
    from cleveragents.cli.demo import Interrupt
    from cleveragents.domain.error_record import Decision
    from cleveragents.providers.reservation import Reservation

PLAN: Final = "p-demo"
ATTEMPTS_MAX: Final = 4
_GATE: Final = gate_key(world.PROVIDER, world.MODEL) or ""
_GATE_WAIT_S: Final = 10.0
#: How often to look whether the user wants to stop.
_LOOK_S: Final = 0.05
_PRICE: Final = Price(input_mtok="2.50", output_mtok="15", request="0.00075")


@dataclass
class ActorBook:
    """What one actor wrote down itself, to be compared with what the services say."""

    name: str
    path: str
    text: str
    paid: list[Money] = field(default_factory=list)
    changes: int = 0
    turns: int = 0
    refused: int = 0
    failures: int = 0
    end: str = "done"


@dataclass
class DemoRun:
    """Runs the actors; share nothing with them but the services, the books and `stop`."""

    root: Path
    actors: int
    seed: int
    budget: Money
    talk: Callable[[str], None]
    interrupt: Interrupt
    stop: StopSignal = field(default_factory=StopSignal)
    stopped: threading.Event = field(default_factory=threading.Event)
    index: world.SickIndex = field(default_factory=world.SickIndex)
    states: list[Status] = field(default_factory=list)

    def run(self) -> dict[str, Any]:
        """Run everything and return the report."""
        self.stop.when_stopped(lambda _: self.stopped.set())
        world.make_repository(self.root, self.actors)
        with self._container() as services:
            books = self._run_actors(services)
            self._await_recovery(services)
            return self._report(services, books)

    def _container(self) -> Container:
        return Container(
            Settings(
                daily_budget_usd=self.budget,
                breaker_pause_s=0.1,
                context_workers_max=8,
            ),
            Parts(
                strategies=(ExplicitFiles(), IdentifierMatch(), self.index),
                prices=PriceTable({world.PRICED: _PRICE}),
                recovery=RecoveryPolicy(backoff_s=0.02, backoff_s_max=0.2),
            ),
            Listeners(on_breaker=self._breaker_changed),
        )

    def _run_actors(self, services: Container) -> list[ActorBook]:
        books = [
            ActorBook(f"actor-{number:02}", world.part_path(number), world.part_source(number))
            for number in range(self.actors)
        ]
        with ThreadPoolExecutor(self.actors, thread_name_prefix="ca-actor") as pool:
            try:
                futures = [
                    pool.submit(self._act, services, number, book)
                    for number, book in enumerate(books)
                ]
                waiting = set(futures)
                while waiting and not self.interrupt.is_asked:
                    waiting = wait(waiting, timeout=_LOOK_S).not_done
                if self.interrupt.is_asked:
                    self.stop.stop("interrupted")
                for future in futures:
                    future.result()
            except BaseException:
                self.stop.stop("interrupted")
                raise
        return books

    def _act(self, services: Container, number: int, book: ActorBook) -> None:
        plan = services.plan_context(PLAN)
        model = world.ScriptedModel(self.seed, number)
        with plan.changeset(actor=book.name, node=book.name, attempt=1):
            for turn in range(world.TURNS):
                answer = self._turn(services, book, model, (number, turn))
                if answer is None or self.stop.stopped:
                    break
                before, book.text = book.text, f"{book.text}\n# {book.name}: {answer}\n"
                plan.record_change(
                    ChangeEntry.modify(book.path, before, book.text, actor=book.name)
                )
                book.changes += 1
                book.turns += 1
        mark = "✓" if book.end == "done" else "✗"
        spent = sum(book.paid, Money(0))
        self.talk(f"  {mark} {book.name}  {book.turns} of {world.TURNS} turns  {spent}  {book.end}")

    def _turn(
        self, services: Container, book: ActorBook, model: world.ScriptedModel, at: tuple[int, int]
    ) -> str | None:
        """Ask until there is an answer, as recovery decides; None means that the actor stops."""
        number, turn = at
        request = services.request(
            f"Improve total_{number:02} in {book.path}", self.root, (book.path,)
        )
        context = services.pipeline.build(request, stop=self.stop)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                return self._call(services, book, model, (turn, context.tokens))
            except Exception as error:  # noqa: BLE001  # every failure goes to recovery
                decision = self._recover(services, book, error, attempt)
                if decision.action not in {Action.RETRY, Action.FEEDBACK}:
                    book.end = f"stopped: {error}"
                    return None
            self.stopped.wait(decision.delay_s)
        book.end = f"stopped after {ATTEMPTS_MAX} attempts"
        return None

    def _call(
        self, services: Container, book: ActorBook, model: world.ScriptedModel, at: tuple[int, int]
    ) -> str:
        """Make one call inside the guarantees: gate, reservation, call, bill."""
        turn, tokens = at
        bound = services.prices.worst_case(world.PRICED, tokens, world.OUTPUT_TOKENS_MAX)
        scopes = Scopes(plan=PLAN, actor=book.name, model=world.PRICED)
        gate = services.errors.gate
        with gate.enter(_GATE, timeout_s=_GATE_WAIT_S, stop=self.stop) as admitted:
            reservation = services.cost_tracker.reserve(bound, scopes)
            try:
                answer = model.call(turn, tokens, self.stopped)
            except TimeoutError:
                # Sent, and nothing heard: it may have been billed, so it is not free.
                reservation.abandon()
                book.paid.append(reservation.charged)
                raise
            except BaseException:
                reservation.release()
                raise
            admitted.ok()
        self._pay(services, book, reservation, answer)
        if not answer.text:
            raise world.EmptyAnswer("the answer has no text")
        services.errors.record_success(
            PLAN, node=book.name, provider=world.PROVIDER, model=world.MODEL
        )
        return answer.text

    def _pay(
        self,
        services: Container,
        book: ActorBook,
        reservation: Reservation,
        answer: world.Answer,
    ) -> None:
        bill = services.prices.cost_of(world.PRICED, answer.usage)
        reservation.settle(bill)
        book.paid.append(bill)

    def _recover(
        self, services: Container, book: ActorBook, error: Exception, attempt: int
    ) -> Decision:
        book.failures += 1
        if isinstance(error, BudgetExceeded):
            book.refused += 1
        hints: dict[str, Any] = {}
        if isinstance(error, world.EmptyAnswer):
            hints["category"] = ErrorCategory.BAD_OUTPUT
        record = services.errors.record_error(
            PLAN,
            error,
            node=book.name,
            actor=book.name,
            attempt=attempt,
            provider=world.PROVIDER,
            model=world.MODEL,
            **hints,
        )
        return services.errors.recover(record)

    def _breaker_changed(self, change: StateChange) -> None:
        self.states.append(change.after)
        if self.states.count("open") == world.SICK_PAUSES:
            self.index.well.set()
        if change.after == "open":
            self.talk(
                f"  ‖ strategy `{change.name}` is paused for {change.retry_after_s:.1f} s "
                f"after {change.failures} failures"
            )
        elif change.after == "half_open":
            self.talk(f"  ? strategy `{change.name}` is probed by one request")
        else:
            self.talk(f"  ✓ strategy `{change.name}` is back")

    def _await_recovery(self, services: Container) -> None:
        """Ask for context until no strategy is paused any more; its pauses are short here."""
        request = services.request("Look once more", self.root, (world.part_path(0),))
        while services.breaker.snapshot() and not self.stop.stopped:
            self.stopped.wait(max(one.retry_after_s for one in services.breaker.snapshot()))
            services.pipeline.build(request)

    def _report(self, services: Container, books: list[ActorBook]) -> dict[str, Any]:
        tracker, plan = services.cost_tracker, services.plan_context(PLAN)
        history = services.errors.history(PLAN)
        diff = plan.diff()
        written = sum((paid for book in books for paid in book.paid), Money(0))
        by_actor = tracker.spend_by("actor")
        recorded = {one.actor: len(one.entries) for one in plan.changesets()}
        spent = tracker.spend_by("plan").get(PLAN, Money(0))
        checks = {
            "spend equals the sum of the bills": spent == written,
            "spend by actor adds up": spent == sum(by_actor.values(), Money(0)),
            "spend is within the budget": spent <= self.budget,
            "every error has a record": history.count == sum(one.failures for one in books),
            "every error has a decision": history.count == history.decision_count,
            "every change is in its own actor's changeset": recorded
            == {book.name: book.changes for book in books},
            "the applied diff gives what the actors wrote": self._applies(diff, books),
        }
        return {
            "actors": self.actors,
            "seed": self.seed,
            "budget": str(self.budget),
            "spent": str(spent),
            "spent_pico_usd": spent.pico,
            "unconfirmed": len(tracker.expire()),
            "calls_refused": sum(book.refused for book in books),
            "errors": dict(sorted((str(k), v) for k, v in history.by_category.items())),
            "decisions": _counted([str(one.action) for one in history.decisions]),
            "breaker": {
                "pauses": self.states.count("open"),
                "probes": self.states.count("half_open"),
            },
            "changes": recorded,
            "diff": diff,
            "checks": checks,
        }

    def _applies(self, diff: str, books: list[ActorBook]) -> bool:
        """Let git apply the diff and compare every file with what its actor meant."""
        if diff:
            world.git(self.root, "apply", stdin=diff)
        return all(
            (self.root / book.path).read_text(encoding="utf-8") == book.text for book in books
        )


def _counted(names: list[str]) -> dict[str, int]:
    return {name: names.count(name) for name in sorted(set(names))}
