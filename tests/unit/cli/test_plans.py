from __future__ import annotations

import re
import signal

import pytest

from cleveragents.application.run_journal import PlanState
from cleveragents.infrastructure.plan_journal import SqliteRunJournal
from cleveragents.infrastructure.store import Store
from unit.cli.plankit import PlanTree

SLOW = """
goal: Take some time
nodes:
  first: {actor: {scripted: [{print: begun}, {sleep_until_s: 1.5}]}}
  second: {needs: [first], actor: {scripted: [{print: x}]}}
"""
MIXED = """
goal: See all states
on_failure: continue
nodes:
  scan: {actor: {scripted: [{spend: 0.02}, {print: done}]}}
  fan:
    needs: [scan]
    for_each: [1, 2]
    attempts_max: 1
    when: item == 1
    actor: {scripted: [{fail: "it is\\nbroken", category: tool.denied}]}
  last: {needs: [fan], actor: {scripted: [{print: x}]}}
"""


@pytest.fixture
def tree(tmp_path, monkeypatch, capsys) -> PlanTree:
    return PlanTree(tmp_path, monkeypatch, capsys)


def test_nothing_is_read_from_a_store_that_is_not_there(tree):
    for words in (["list"], ["status"], ["watch"]):
        answer = tree.run(*words)
        assert (answer.code, answer.out) == (0, "")
        assert answer.err.startswith("No plans yet\n  store  ")
        assert "hint: Run `cleveragents" in answer.err
    for words in (["status", "p"], ["watch", "p"], ["logs", "p"], ["cancel", "p"], ["pause", "p"]):
        answer = tree.run(*words)
        assert (answer.code, answer.err.splitlines()[0]) == (
            1,
            "error[CA4107]: Plan 'p' is not known",
        )
    assert not (tree.root / ".cleveragents").exists()


def test_status_shows_each_node_with_its_cost_and_why_it_is_not_done(tree):
    assert tree.run_plan(MIXED).code == 1
    answer = tree.run("status", tree.plan_id)
    assert answer.code == 0
    assert answer.out == (
        f"  plan   {tree.plan_id}\n"
        "  goal   See all states\n"
        "  state  failed\n"
        "  nodes  1 of 4 done\n"
        "  spent  0.02 USD\n"
        "\n"
        "node    state                attempts      cost  why\n"
        "scan    done                        1  0.02 USD\n"
        "fan     1 failed, 1 skipped         1         -  2 items\n"
        "fan[0]  failed                      1            it is broken\n"
        "fan[1]  skipped                     0\n"
        "last    waiting                     0         -  cannot start: fan failed\n"
    )
    assert answer.err == f"\nhint: Run `cleveragents resume {tree.plan_id}`\n"


def test_status_as_records_has_the_plan_and_then_its_nodes(tree):
    tree.run_plan(MIXED)
    plan, *nodes = tree.run("status", tree.plan_id, "--json").records
    assert (plan["kind"], plan["state"], plan["spent_usd"]) == ("plan", "failed", "0.02")
    assert plan["error"]["code"] == "CA5206"
    assert {one["node"]: (one["state"], one["spent_usd"]) for one in nodes} == {
        "scan": ("done", "0.02"),
        "fan[0]": ("failed", None),
        "fan[1]": ("skipped", None),
    }


def test_plan_of_another_name_is_not_known(tree):
    tree.run_plan(MIXED)
    answer = tree.run("status", "p-none")
    assert answer.code == 1
    assert answer.err.endswith("hint: Run `cleveragents list` to see which there are\n")


def test_plan_that_never_ran_is_shown_and_can_be_started(tree):
    tree.run_plan(MIXED)
    with Store(tree.root / ".cleveragents" / "state.db") as store:
        journal = SqliteRunJournal(store)
        journal.add("p-ready", journal.get(tree.plan_id).source)
    answer = tree.run("watch", "p-ready")
    assert answer.err == (
        "plan p-ready  3 nodes, at most 8 at once\n\nhint: Run `cleveragents resume p-ready`\n"
    )


def test_list_shows_all_plans_the_newest_last(tree):
    tree.run_plan(MIXED)
    tree.run_plan(f"goal: {'long ' * 20}\nnodes: {{a: {{actor: {{scripted: [{{print: x}}]}}}}}}")
    head, first, second = tree.run("status").out.splitlines()
    assert head.split("  ")[0] == "plan"
    assert re.search(r"failed +1 of 4  0\.02 USD  20\d\d-\d\d-\d\d \d\d:\d\d  See all", first)
    assert second.endswith("…")


def test_status_of_a_plan_that_nothing_can_follow_gives_no_hint(tree):
    tree.run_plan(MIXED.replace("fail:", "print:").replace(", category: tool.denied", ""))
    with Store(tree.root / ".cleveragents" / "state.db") as store:
        SqliteRunJournal(store).move(tree.plan_id, PlanState.APPLIED)
    assert tree.run("status", tree.plan_id).err == ""


def test_paused_plan_finishes_what_runs_and_goes_on_later(tree):
    process = tree.start(SLOW.replace("1.5", "4"))
    answer = tree.run("pause", tree.plan_id)
    assert answer.code == 0
    assert "what runs is finished first" in answer.err
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "  ✓ first" in said
    assert "paused after" in said
    assert tree.plans()[0]["state"] == "paused"
    assert tree.run("resume").code == 0


def test_plan_that_is_cancelled_now_stops_its_attempts(tree):
    process = tree.start(SLOW.replace("1.5", "600"))
    answer = tree.run("cancel", tree.plan_id, "--now", "--json")
    assert answer.records == [
        {"kind": "stop", "plan": tree.plan_id, "state": "cancelled", "now": True}
    ]
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert tree.plans()[0]["state"] == "cancelled"


def test_plan_that_nobody_runs_is_cancelled_at_once(tree):
    tree.run_plan(MIXED)
    answer = tree.run("cancel", tree.plan_id)
    assert answer.err.startswith(f"Cancelled plan `{tree.plan_id}`\n")
    assert tree.plans()[0]["state"] == "cancelled"
    assert tree.run("cancel", tree.plan_id).code == 1
    assert tree.run("pause", tree.plan_id).code == 1


def test_plan_of_a_killed_process_is_stopped_and_goes_on_where_it_was(tree):
    process = tree.start(SLOW.replace("1.5", "600"))
    tree.wait_until(lambda: "begun" in tree.run("logs", tree.plan_id).out)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert tree.plans()[0]["state"] == "stopped"
    answer = tree.run("watch")
    assert answer.code == 1
    assert "is gone; what is done is kept" in answer.err
    assert f"hint: Run `cleveragents resume {tree.plan_id}`" in answer.err


def test_watch_follows_a_plan_of_another_process_to_its_end(tree):
    process = tree.start(SLOW)
    answer = tree.run("watch")
    process.communicate(timeout=30)
    assert answer.code == 0
    head, first, second, end, _, hint = answer.err.splitlines()
    assert head.startswith(f"plan {tree.plan_id}  2 nodes")
    assert first.startswith("  ✓ first ")
    assert second.startswith("  ✓ second ")
    assert end.endswith(": 2 of 2 nodes")
    assert hint == f"hint: Run `cleveragents diff {tree.plan_id}`"


def test_watch_of_a_plan_that_ended_shows_it_once(tree):
    tree.run_plan(MIXED)
    answer = tree.run("watch", tree.plan_id, "--json")
    assert answer.code == 1
    kinds = [one["kind"] for one in answer.records]
    assert (kinds[0], kinds[-1]) == ("plan.started", "plan.ended")
    assert {
        one["node"]: one["state"] for one in answer.records if "state" in one and "node" in one
    } == {
        "scan": "done",
        "fan[0]": "failed",
        "fan[1]": "skipped",
    }
    assert [one["message"] for one in answer.records if "message" in one] == ["it is\nbroken"]
    assert [one["amount_usd"] for one in answer.records if "amount_usd" in one] == ["0.02"]


def test_logs_show_what_actors_told_also_of_one_node(tree):
    tree.run_plan(
        "goal: g\nnodes:\n"
        "  a: {actor: {scripted: [{print: one}, {write: f, text: x}]}}\n"
        '  b: {needs: [a], actor: {scripted: [{print: "two\\e[2J"}, {fail: x, attempts: 1}]}}\n'
    )
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d  a  one\n"
        r"\d\d:\d\d:\d\d  b  two\\x1b\[2J\n"
        r"\d\d:\d\d:\d\d  b \(2\)  two\\x1b\[2J\n",
        tree.run("logs", tree.plan_id).out,
    )
    assert [
        (one["node"], one["attempt"], one["text"])
        for one in tree.run("logs", tree.plan_id, "a", "--json").records
    ] == [("a", 1, "one")]
    told = tree.run("watch", "--json").records
    assert [one.get("files") for one in told if one["kind"] == "node.finished"] == [1, None]
    answer = tree.run("logs", tree.plan_id, "c")
    assert answer.err.startswith(f"No lines of node `c` in plan `{tree.plan_id}`\n")


def test_logs_follow_a_plan_until_it_ends(tree):
    process = tree.start(SLOW)
    answer = tree.run("logs", tree.plan_id, "--follow")
    process.communicate(timeout=30)
    assert [line.split("  ", 1)[1] for line in answer.out.splitlines()] == [
        "first  begun",
        "second  x",
    ]
