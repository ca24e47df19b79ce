from __future__ import annotations

import json
import os
import signal
import threading

import pytest

from cleveragents.cli import demo_world as world
from cleveragents.cli.demo import Interrupt
from cleveragents.cli.demo_run import DemoRun
from cleveragents.cli.main import main
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.errors import SetupError
from cleveragents.domain.money import Money
from cleveragents.domain.stop_signal import StopSignal


def test_demo_ends_with_balanced_books(capsys):
    assert main(["demo", "--actors", "8", "--json"]) == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert all(report["checks"].values())
    assert report["spent_pico_usd"] > 0
    assert report["breaker"] == {"pauses": 2, "probes": 2}
    assert sum(report["errors"].values()) == sum(report["decisions"].values())
    assert set(report["changes"]) == {f"actor-{number:02}" for number in range(8)}
    assert "strategy `sick-index` is back" in shown.err


def test_demo_shows_the_diff_and_then_the_books(capsys):
    assert main(["demo", "--actors", "2", "--budget-usd-max", "5"]) == 0
    text = capsys.readouterr().out
    assert text.index("diff --git a/shop/part_00.py") < text.index("spent ")
    assert "refused      0 calls" in text
    assert "✓ spend equals the sum of the bills" in text


def test_demo_without_money_makes_no_call(capsys):
    assert main(["demo", "--actors", "2", "--budget-usd-max", "0", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["spent_pico_usd"], report["calls_refused"], report["diff"]) == (0, 2, "")


def test_demo_that_does_not_balance_ends_with_1(capsys, monkeypatch):
    monkeypatch.setattr(DemoRun, "_applies", lambda *_: False)
    assert main(["demo", "--actors", "1"]) == 1
    assert "✗ the applied diff gives what the actors wrote" in capsys.readouterr().out


def test_interrupted_demo_stops_its_actors_and_removes_its_repository(monkeypatch, capsys):
    """The signal comes while an actor is in the middle of its work."""
    seen = []
    act = DemoRun._act

    def interrupted(run: DemoRun, *arguments: object) -> None:
        seen.append(run.root)
        os.kill(os.getpid(), signal.SIGINT)
        act(run, *arguments)

    monkeypatch.setattr(DemoRun, "_act", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main(["demo", "--actors", "1"])
    assert "nothing else was made" in capsys.readouterr().err
    assert not seen[0].exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_fails_because_of_an_interrupt_is_an_interrupt(monkeypatch):
    """In a terminal Ctrl-C reaches git too, which then fails by itself."""

    def dying(run: DemoRun) -> None:
        run.interrupt.is_asked = True
        raise OSError("git was interrupted")

    monkeypatch.setattr(DemoRun, "run", dying)
    with pytest.raises(KeyboardInterrupt):
        main(["demo", "--actors", "1"])


def test_stopped_actor_ends_its_turns(tmp_path):
    run = DemoRun(tmp_path / "shop", 2, 7, Money.of(5), lambda _: None, Interrupt())
    run.stop.stop()
    report = run.run()
    assert sum(report["changes"].values()) <= 2


def test_actor_gives_up_after_its_last_attempt(tmp_path, monkeypatch):
    def always_empty(*_: object) -> world.Answer:
        return world.Answer("", world.Usage(output_tokens=1))

    monkeypatch.setattr(world.ScriptedModel, "call", always_empty)
    said: list[str] = []
    report = DemoRun(tmp_path / "shop", 1, 7, Money.of(5), said.append, Interrupt()).run()
    assert all(report["checks"].values())
    assert any("stopped" in line for line in said)


def test_missing_git_is_a_set_up_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="needs `git`") as caught:
        world.git(tmp_path, "status")
    assert caught.value.code == "CA1006"


@pytest.mark.parametrize("seed", range(6))
def test_same_seed_gives_the_same_script(seed):
    def script() -> list[str]:
        model = world.ScriptedModel(seed, 3)
        ready = threading.Event()
        ready.set()
        told = []
        for turn in [0, 0, 1, 1, 2, 2]:
            try:
                told.append(repr(model.call(turn, 10, ready)))
            except (world.ScriptedFailure, OSError) as error:
                told.append(repr(error))
        return told

    assert script() == script()


def test_sick_index_finds_first_lines_once_it_is_well(tmp_path):
    (tmp_path / "a.py").write_text("first\nsecond\n")
    index, request = world.SickIndex(), ContextRequest("x", tmp_path, ("a.py",))
    with pytest.raises(OSError, match="cannot be read"):
        list(index.find(request, StopSignal()))
    index.well.set()
    assert [one.text for one in index.find(request, StopSignal())] == ["first"]
