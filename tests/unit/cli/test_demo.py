from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter

import pytest

from cleveragents.cli import demo_run, output
from cleveragents.cli import demo_world as world
from cleveragents.cli.demo import Interrupt
from cleveragents.cli.demo_books import Books, _starts, books_of
from cleveragents.cli.demo_run import DemoRun
from cleveragents.cli.main import main
from cleveragents.cli.stored_plans import Told
from cleveragents.domain.errors import SetupError
from cleveragents.domain.money import Money
from cleveragents.infrastructure.plan_files import load_plan


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files that nobody else uses."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.long
def test_demo_survives_a_kill_and_a_budget_and_tells_the_truth(temporary, capsys):
    assert main(["demo", "--actors", "10", "--json"]) == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert all(report["checks"].values()), report["checks"]
    assert len(report["checks"]) == 10
    assert report["ran_again"] == 0
    assert 0 < report["killed"]["done"] < report["nodes"] == 10 + 3
    assert report["editors"] == report["actors"] == 10
    assert 1 < report["at_once"] <= world.AT_ONCE
    assert report["errors"]["plan.check_failed"] == 1
    assert sum(report["errors"].values()) == sum(report["decisions"].values())
    assert report["diff"].count("+    return sum(prices)") == 10
    told = [line for line in shown.err.splitlines() if line.startswith("$ ")]
    assert [line.split()[2] for line in told if "--budget" not in line] == (
        ["run", "resume", "diff", "apply", "undo", "verify"]
    )
    assert "killed with SIGKILL: " in shown.err
    assert list(temporary.iterdir()) == []


@pytest.mark.long
def test_kept_demo_has_the_numbers_that_it_printed_in_its_store(temporary, capsys, monkeypatch):
    """And it needs neither overlays nor bubblewrap, nor what the user has set for other work."""
    monkeypatch.setenv("CLEVERAGENTS_SANDBOX_KIND", "worktree")
    monkeypatch.setenv("CLEVERAGENTS_CONFINEMENT", "off")
    monkeypatch.setenv("CLEVERAGENTS_STORE", str(temporary / "mine.db"))
    monkeypatch.setenv("GIT_DIR", str(temporary / "mine.git"))
    assert main(["demo", "--actors", "8", "--keep"]) == 0
    text = capsys.readouterr().out
    (folder,) = temporary.iterdir()
    root = folder / "shop"
    books = books_of(root, world.SHARED)
    assert f"kept       {root}" in text
    assert f"plan       {books.plan_id}: {books.nodes} nodes, {books.most_at_once} at once" in text
    assert f"{books.spent} of {books.limit}" in text
    assert f"refused    {books.errors['plan.budget']} calls" in text
    assert re.search(r"ran again  0 of \d+ finished nodes", text)
    assert "✗" not in text
    assert books.state == "reverted"


def test_demo_that_does_not_hold_ends_with_1(capsys, monkeypatch):
    killed = {"done": 1, "to_merge": 0, "cut_off": 0}
    counts = {"errors": {}, "decisions": {}, "killed": killed, "checks": {"all is well": False}}
    names = "plan nodes at_once ran_again spent_at_stop budget spent budget_raised"
    names += " calls_refused editors seconds"
    monkeypatch.setattr(DemoRun, "run", lambda _: dict.fromkeys(names.split(), 0) | counts)
    assert main(["demo"]) == 1
    text = capsys.readouterr().out
    assert "✗ all is well" in text
    assert "errors     none" in text


def test_demo_with_money_left_is_resumed_once(tmp_path, monkeypatch):
    run = DemoRun(tmp_path, 8, lambda _: None, Interrupt())
    commands = []

    def command(_: DemoRun, *words: str, kill_after: int | None = None) -> int:
        commands.append((words[0], kill_after))
        return 0

    monkeypatch.setattr(DemoRun, "_command", command)
    monkeypatch.setattr(demo_run, "books_of", lambda *_: books(done=11, nodes=11))
    run._play_plan()
    assert commands == [("run", 4), ("resume", None)]
    assert not run.checks["the plan was killed in its middle"]


def test_check_fails_when_a_finished_node_ran_again(tmp_path, monkeypatch):
    run = DemoRun(tmp_path, 8, lambda _: None, Interrupt())
    monkeypatch.setattr(DemoRun, "_command", lambda *_, **__: 0)
    monkeypatch.setattr(demo_run, "books_of", lambda *_: books(again=2, spent=Money.of(2)))
    run._play_plan()
    assert not run.checks["2 of 5 finished nodes ran again"]
    assert not run.checks["no budget was exceeded"]


def books(**changed: object) -> Books:
    usual = {
        "plan_id": "p-1",
        "state": "done",
        "nodes": 11,
        "done": 5,
        "to_merge": 0,
        "cut_off": 0,
        "again": 0,
        "most_at_once": 8,
        "spent": Money(0),
        "limit": Money.of(1),
        "errors": Counter(),
        "decisions": Counter(),
        "editors": 8,
    }
    return Books(**(usual | changed))


def test_start_of_a_node_that_was_done_is_counted():
    def told(kind: str, *names: str) -> Told:
        nodes = [{"node": name, "attempt": 1, "actor": "a"} for name in names]
        return Told(1, 0.0, f"node.{kind}", None, {"nodes": nodes})

    before = [told("started", "a", "b"), told("done", "a"), told("interrupted", "b")]
    assert _starts("p-1", [*before, told("started", "b")]) == (0, 2)
    assert _starts("p-1", [*before, told("started", "b", "a")]) == (1, 2)


def test_interrupt_in_the_middle_of_the_plan_leaves_nothing_behind(temporary, monkeypatch, capsys):
    talk = output.talk

    def interrupted(text: str) -> None:
        talk(text)
        if text.startswith("plan p-"):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(output, "talk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main(["demo", "--keep"])
    assert "nothing else was made" in capsys.readouterr().err
    assert list(temporary.iterdir()) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_before_a_process_began_reaches_it():
    interrupt = Interrupt()
    interrupt.ask()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        interrupt.pass_on_to(child)
        assert child.wait(timeout=10) != 0


def test_error_in_the_middle_ends_the_process_that_runs(tmp_path):
    started = []

    def go_through(run: DemoRun) -> None:
        with run._started("init", "--schema", stderr=subprocess.DEVNULL) as process:
            started.append(process)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go_through(DemoRun(tmp_path, 8, lambda _: None, Interrupt()))
    assert started[0].returncode is not None


def test_what_fails_because_of_an_interrupt_is_an_interrupt(monkeypatch):
    """In a terminal Ctrl-C reaches git too, which then fails by itself."""

    def dying(run: DemoRun) -> None:
        run.interrupt.ask()
        raise OSError("git was interrupted")

    monkeypatch.setattr(DemoRun, "run", dying)
    with pytest.raises(KeyboardInterrupt):
        main(["demo"])


def test_what_fails_without_an_interrupt_is_told(monkeypatch, temporary, capsys):
    monkeypatch.setenv("PATH", str(temporary))
    assert main(["demo"]) == SetupError.exit_code
    assert "error[CA1006]: The demo needs `git`" in capsys.readouterr().err


@pytest.mark.parametrize("actors", [8, 64])
def test_plan_of_the_demo_keeps_every_rule(tmp_path, actors):
    """Its budget is enough for every call once, and for no two of them twice."""
    path = tmp_path / "plan.yaml"
    path.write_text(world.plan_text(actors), encoding="utf-8")
    plan = load_plan(str(path)).plan
    assert plan.budget is not None
    assert plan.budget.max_usd == world.budget_of(actors)
    last_call = Money((actors - 1) * world.BILL.pico) + world.BOUND
    assert last_call <= plan.budget.max_usd < last_call + world.BILL + world.BILL
