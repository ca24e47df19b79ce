from __future__ import annotations

import threading

import pytest

from cleveragents.actors.building import ActorParts, build_actor
from cleveragents.actors.pause import pause
from cleveragents.application.services.error_classification import classify, describe
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import BudgetExceeded, RequestError, SandboxError
from cleveragents.domain.money import Money
from cleveragents.domain.plan import (
    DeleteStep,
    EditStep,
    FailStep,
    Node,
    PrintStep,
    ScriptedActor,
    SleepStep,
    SpendStep,
    WriteStep,
)
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.providers.cost_tracker import CostTracker
from cleveragents.testing import FrozenClock
from unit.actors.attemptkit import RealPurse


def run(world, *steps, parts=None, outputs="text", **given):
    it = Node(name="work", actor=ScriptedActor(steps), outputs=outputs)
    with world.attempt(it, **given) as attempt:
        return build_actor(it.actor, parts or ActorParts()).run(attempt)


def test_steps_change_files_in_their_order(world):
    run(
        world,
        WriteStep("new.txt", "one\n"),
        EditStep("new.txt", "one", "two"),
        EditStep("src/app.py", "return 1", "return 2"),
        DeleteStep("empty.txt"),
    )
    assert [(entry.kind, entry.path) for entry in world.entries()] == [
        ("create", "new.txt"),
        ("modify", "new.txt"),
        ("modify", "src/app.py"),
        ("delete", "empty.txt"),
    ]
    assert world.entries()[2].after.data.endswith(b"return 2\n")


def test_printed_lines_are_the_output_and_in_the_log(world):
    assert run(world, PrintStep("a"), PrintStep("b"), outputs="lines").output == ["a", "b"]
    assert world.logged == ["a", "b"]


def test_printed_json_is_the_output_if_the_node_says_so(world):
    assert run(world, PrintStep('{"a": 1}'), outputs="json").output == {"a": 1}


def test_edit_of_a_text_that_stands_twice_fails(world):
    with pytest.raises(RequestError, match="once, got 2 times, at lines 1, 3"):
        run(world, EditStep("src/twin.py", "x = 1", "x = 2"))


def test_delete_of_a_missing_file_fails(world):
    with pytest.raises(SandboxError) as caught:
        run(world, DeleteStep("missing"))
    assert caught.value.code == "CA5007"


def test_spending_is_in_the_books(world):
    run(world, SpendStep(Money.of("0.25")))
    assert world.purse.tracker.get_daily_spend() == Money.of("0.25").usd


def test_spending_over_a_budget_is_refused_before_it_happens(world):
    purse = RealPurse(CostTracker(daily_budget=0.20))
    with pytest.raises(BudgetExceeded):
        run(world, SpendStep(Money.of("0.25")), purse=purse)
    assert purse.tracker.get_daily_spend() == 0


@pytest.mark.parametrize(
    "category", [one for one in ErrorCategory if one is not ErrorCategory.CANCELLED]
)
def test_failure_is_recorded_as_the_kind_that_the_script_says(world, category):
    with pytest.raises(SandboxError) as caught:
        run(world, WriteStep("kept", ""), FailStep("as told", category), WriteStep("not", ""))
    error = caught.value
    assert (error.code, error.message) == ("CA5206", "as told")
    record = describe("p", error, {"category": error.facts["category"]}, at=0.0)
    assert record.category is category
    assert [entry.path for entry in world.entries()] == ["kept"]


def test_failure_as_cancelled_is_a_stop(world):
    with pytest.raises(Stopped) as caught:
        run(world, FailStep("as told", ErrorCategory.CANCELLED))
    assert classify(caught.value, 0.0).category is ErrorCategory.CANCELLED


def test_failure_of_the_first_attempts_passes_later(world):
    steps = (FailStep("flaky", attempts=2), PrintStep("passed"))
    for attempt in (1, 2):
        with pytest.raises(SandboxError, match="flaky"):
            run(world, *steps, attempt=attempt)
    assert run(world, *steps, attempt=3).output == "passed"


def test_sleep_waits_by_the_clock_until_its_time(world):
    clock = FrozenClock()
    waits = []

    def waiting(_stop, seconds):
        waits.append(seconds)
        # As a real wait may, it ends early once.
        clock.advance(seconds if len(waits) > 1 else 2.0)

    parts = ActorParts(clock=clock, pause=waiting)
    run(world, SleepStep(5.0), SleepStep(5.0), SleepStep(7.0), parts=parts)
    assert waits == [5.0, 3.0, 2.0]


def test_stop_ends_a_sleep(world):
    stop = StopSignal()

    def stopping(signal, _):
        signal.stop("enough")

    with pytest.raises(Stopped, match="enough"):
        run(world, SleepStep(60.0), stop=stop, parts=ActorParts(pause=stopping))


def test_stop_is_heeded_between_steps(world):
    stop = StopSignal()
    with pytest.raises(Stopped):
        run(world, PrintStep("a"), PrintStep("b"), stop=stop, log=lambda _: stop.stop("now"))


def test_pause_ends_at_the_signal():
    stop = StopSignal()
    stopper = threading.Timer(0.01, stop.stop)
    stopper.start()
    pause(stop, 60.0)
    assert stop.stopped
    stopper.join()


def test_pause_ends_by_itself():
    stop = StopSignal()
    pause(stop, 0.001)
    assert not stop.stopped
