"""What a run means to its user: where it finds things, what it counts, and what it leaves."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys

import pytest

from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
from cleveragents.domain.money import Money
from cleveragents.infrastructure.sandbox import confinement
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal
from cleveragents.infrastructure.store import Store
from unit.cli.plankit import PlanTree

#: Each of the module's functions is slow the first time, and not once `go` is there.
MODULE = """
import threading
from pathlib import Path

def slow(attempt):
    Path(__file__).with_name("begun").touch()
    while not Path(__file__).with_name("go").exists():
        threading.Event().wait(0.02)
    return "from beside the plan file"
"""


@pytest.fixture
def tree(tmp_path, monkeypatch, capsys) -> PlanTree:
    return PlanTree(tmp_path, monkeypatch, capsys)


def killed(tree: PlanTree, text: str) -> None:
    """Run a plan in a process of its own, and kill that once its first line is told."""
    process = tree.start(text)
    tree.wait_until(lambda: "begun" in tree.run("logs", tree.plan_id).out)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)


def test_resumed_plan_finds_its_functions_beside_its_file_wherever_it_is_resumed(tree, monkeypatch):
    name = "functions_beside_a_killed_plan"
    for folder in ("plans", "started", "resumed"):
        (tree.root / folder).mkdir()
    (tree.root / "plans" / f"{name}.py").write_text(MODULE)
    (tree.root / "plans" / "p.yaml").write_text(
        f"goal: g\nnodes: {{a: {{actor: {{python: '{name}:slow'}}}}}}"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "cleveragents", "run", "../plans/p.yaml"],
        cwd=tree.root / "started",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    tree.wait_until((tree.root / "plans" / "begun").exists)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    (tree.root / "plans" / "go").touch()
    monkeypatch.chdir(tree.root / "resumed")
    assert tree.run("resume").code == 0
    records = tree.run("status", tree.plan_id, "--json").records
    assert records[1]["output"] == "from beside the plan file"


def test_plan_file_outside_of_the_tree_is_found_again_too(tree, tmp_path_factory, monkeypatch):
    outside = tmp_path_factory.mktemp("outside")
    name = "functions_outside_of_the_tree"
    (outside / f"{name}.py").write_text("def bad(attempt):\n    raise PermissionError('not yet')\n")
    (outside / "p.yaml").write_text(f"goal: g\nnodes: {{a: {{actor: {{python: '{name}:bad'}}}}}}")
    assert tree.run("run", str(outside / "p.yaml")).code == 1
    # As in a process of its own.
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(outside)])
    answer = tree.run("resume")
    assert (answer.code, "not yet" in answer.err) == (1, True)


def test_cancelled_plan_of_a_dead_process_leaves_no_sandbox_and_no_promised_money(tree):
    name = "functions_that_promise_and_wait"
    (tree.root / f"{name}.py").write_text(
        "import threading\n"
        "def work(attempt):\n"
        "    attempt.files.write('one.txt', b'1')\n"
        "    attempt.purse.reserve(0.5)\n"
        "    attempt.log('begun')\n"
        "    threading.Event().wait(600)\n"
    )
    killed(tree, f"goal: g\nnodes: {{a: {{actor: {{python: '{name}:work'}}}}}}")
    plan_id = tree.plan_id
    assert left_of(tree) == (1, [("open",)])
    with Store(tree.root / ".cleveragents" / "state.db") as store:
        # As if it had died before it could decide.
        errors = ErrorRecoveryService(journal=SqliteErrorJournal(store))
        errors.record_error(plan_id, ValueError("x"), node="a")
    answer = tree.run("cancel", plan_id)
    assert answer.code == 0
    assert tree.run("verify").code == 0
    assert f"Run `cleveragents resume {plan_id}`" in answer.err
    assert left_of(tree) == (0, [("unconfirmed",)])
    plan, node = tree.run("status", plan_id, "--json").records
    assert (plan["state"], node["state"]) == ("cancelled", "waiting")
    assert plan["spent_usd"] == f"{Money.of('0.5').usd:f}"
    told = tree.run("audit", "show", "--json").records
    assert [one["kind"] for one in told if one["kind"].startswith(("node.int", "plan.canc"))] == [
        "node.interrupted",
        "plan.cancelled",
    ]
    assert tree.run("resume").err.startswith("No plan to go on with")


def left_of(tree: PlanTree) -> tuple[int, list[tuple[str]]]:
    """Return how many sandboxes are held, and the states of all promises of money."""
    with Store(tree.root / ".cleveragents" / "state.db") as store, store.read() as connection:
        held = connection.execute("SELECT count(*) FROM sandboxes WHERE state <> 'released'")
        states = connection.execute("SELECT state FROM reservations").fetchall()
        return held.fetchone()[0], states


@pytest.mark.parametrize("flag", ["--budget", "--budget-usd-max"])
def test_budget_has_one_short_name_and_one_that_says_its_unit(tree, flag):
    text = "goal: g\nnodes: {a: {actor: {scripted: [{spend: 0.25}, {spend: 0.25}]}}}"
    assert tree.run_plan(text, flag, "0.30").code == 4
    assert tree.run("resume", flag, "0.80").code == 0


def test_node_that_used_up_its_own_money_goes_on_as_the_hint_says(tree):
    text = (
        "goal: g\nbudget: {max_usd: 9}\nnodes:\n"
        "  a: {actor: {scripted: [{spend: 0.25}]}, budget: {max_usd: 0.10}}\n"
    )
    answer = tree.run_plan(text)
    assert answer.code == 4
    raised, go_on = re.findall("`([^`]+)`", answer.err.splitlines()[-1])
    assert shlex.split(raised)[:4] == ["cleveragents", "budget", "set", "label"]
    for command in (raised, go_on):
        assert tree.run(*shlex.split(command)[1:]).code == 0


def test_day_without_money_is_raised_as_the_hint_says_and_not_the_plan(tree):
    assert tree.run("budget", "set", "day", "0.10").code == 0
    answer = tree.run_plan("goal: g\nnodes: {a: {actor: {scripted: [{spend: 0.25}]}}}")
    assert answer.code == 4
    raised, go_on = re.findall("`([^`]+)`", answer.err.splitlines()[-1])
    assert raised == "cleveragents budget set day 0.5"
    for command in (raised, go_on):
        assert tree.run(*shlex.split(command)[1:]).code == 0


def test_question_of_an_actor_is_a_choice_of_a_person_and_resume_is_one(tree):
    text = (
        "goal: g\nnodes:\n"
        "  a: {actor: {scripted: [{fail: Which one, category: plan.question, attempts: 1}]}}\n"
    )
    assert tree.run_plan(text).code == 5
    assert tree.run("resume").code == 0


@pytest.mark.parametrize("action", ["skip", "retry"])
def test_node_that_the_budget_stopped_did_not_run_whatever_its_recovery_says(tree, action):
    text = (
        "goal: g\nbudget: {max_usd: 0.10}\non_failure: continue\nnodes:\n"
        f"  a: {{actor: {{scripted: [{{spend: 0.25}}, {{write: one.txt, text: x}}]}},"
        f" recovery: {{cures: {{plan.budget: [{action}]}}}}}}\n"
        "  b: {needs: [a], actor: {scripted: [{print: x}]}}\n"
    )
    answer = tree.run_plan(text)
    assert answer.code == 4
    assert "0 of 2 nodes" in answer.err
    records = tree.run("status", tree.plan_id, "--json").records
    assert [one["state"] for one in records] == ["failed", "failed"]
    assert tree.run("resume", "--budget", "1", "--yes").code == 0
    assert tree.read("one.txt") == "x"


def test_data_in_a_script_is_refused_with_its_line_before_anything_runs(tree):
    answer = tree.run_plan(
        "goal: g\nnodes:\n  a:\n    for_each: [1]\n    actor:\n      command:\n"
        '        - sh\n        - -c\n        - "echo ${item}"\n'
    )
    assert answer.code == 2
    assert "plan.yaml:9:11" in answer.err
    assert not (tree.root / ".cleveragents").exists()


@pytest.fixture
def without_bwrap(monkeypatch):
    monkeypatch.setenv("CLEVERAGENTS_CONFINEMENT", "required")
    monkeypatch.setattr(confinement, "probe_bubblewrap", lambda: "`bwrap` is not installed")


@pytest.mark.parametrize("node", ["actor: {command: [ls]}", "check: ls, actor: {scripted: []}"])
@pytest.mark.usefixtures("without_bwrap")
def test_commands_that_cannot_be_confined_are_a_mistake_of_set_up_told_before_anything(tree, node):
    answer = tree.run_plan(f"goal: g\nnodes: {{a: {{{node}}}}}")
    assert answer.code == 3
    assert answer.err.startswith(
        "error[CA5006]: Commands must be confined, and `bwrap` is not installed"
    )
    assert tree.run("list").err.startswith("No plans yet")


@pytest.mark.usefixtures("without_bwrap")
def test_function_whose_command_cannot_be_confined_ends_the_plan_at_its_first_attempt(tree):
    name = "functions_that_run_commands"
    (tree.root / f"{name}.py").write_text(
        "from cleveragents.domain.command import Command\n"
        "def work(attempt):\n"
        "    attempt.bench.run(Command(('ls',)))\n"
    )
    answer = tree.run_plan(
        f"goal: g\non_failure: continue\nat_once: 1\nnodes:\n"
        f"  a: {{actor: {{python: '{name}:work'}}, recovery: {{cures: {{llm.auth: [retry]}}}}}}\n"
        f"  b: {{actor: {{python: '{name}:work'}}}}\n"
    )
    assert answer.code == 3
    assert "error[CA5006]: " in answer.err
    records = tree.run("status", tree.plan_id, "--json").records
    assert [(one["node"], one["attempt"]) for one in records[1:]] == [("a", 1)]
    assert tree.run("resume").code == 3


@pytest.mark.usefixtures("without_bwrap")
def test_plan_without_commands_runs_where_they_cannot_be_confined(tree):
    assert tree.run_plan("goal: g\nnodes: {a: {actor: {scripted: [{print: x}]}}}").code == 0


FAN_OUT = """
goal: g
at_once: 2
nodes:
  scan: {actor: {scripted: [{print: "[1, 2, 3, 4, 5]"}]}, outputs: json}
  fan:
    needs: [scan]
    for_each: OVER
    attempts_max: 1
    actor: {scripted: [{print: x}, {fail: broken, category: tool.denied}]}
  late: {needs: [fan], for_each: "${nodes.fan.output}", actor: {scripted: [{print: x}]}}
  last: {needs: [late], actor: {scripted: [{print: x}]}}
"""


@pytest.mark.parametrize(
    "over", ['"${nodes.scan.output}"', "[1, 2, 3, 4, 5]", "{over: {a: 1, b: 2}}"]
)
def test_members_of_a_fan_out_count_as_soon_as_they_are_known(tree, over):
    """Two of the members began; of `late` nobody knows them yet, so it counts as one."""
    tree.run_plan(FAN_OUT.replace("OVER", over))
    total = 5 if "{over" in over else 8
    (record,) = tree.plans()
    assert (record["done"], record["nodes"], record["nodes_known"]) == (1, total, False)
    assert f" 1 of {total}+ " in tree.run("list").out
    assert f"nodes  1 of {total}+ done" in tree.run("status", tree.plan_id).out


def test_count_of_a_plan_that_is_done_is_exact(tree):
    text = FAN_OUT.replace("OVER", "[1, 2, 3]").replace(
        ", {fail: broken, category: tool.denied}", ""
    )
    assert tree.run_plan(text).code == 0
    assert "8 of 8 " in tree.run("list").out
    assert tree.plans()[0]["nodes_known"]


def test_fan_out_whose_needs_failed_counts_the_members_that_stand_in_the_plan(tree):
    text = FAN_OUT.replace('print: "[1, 2, 3, 4, 5]"', "fail: broken, category: tool.denied")
    tree.run_plan(text.replace("OVER", "[1, 2, 3]"))
    assert " 0 of 6+ " in tree.run("list").out


@pytest.mark.parametrize("over", ['"${nodes.scan.output}"', "[1, 2, 3, 4, 5]"])
def test_end_of_a_run_counts_members_that_never_began(tree, over):
    """Two of five members began and failed: three wait, and so do `late` and `last`."""
    text = FAN_OUT.replace("OVER", over)
    assert ": 1 of 8 nodes" in tree.run_plan(text).err
    assert tree.run_plan(text, "--json").records[-1]["nodes"] == {
        "done": 1,
        "failed": 2,
        "waiting": 5,
    }
