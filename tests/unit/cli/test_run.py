from __future__ import annotations

import os
import re
import shlex
import signal
import sys

import pytest

from cleveragents.application.run_journal import PlanState, plan_of
from cleveragents.application.services.run_result import RunResult
from cleveragents.cli import output
from cleveragents.cli.plain_view import warning
from cleveragents.cli.run_desk import RunDesk, Stops
from cleveragents.cli.run_end import RunEnd
from cleveragents.cli.view_model import RunModel
from cleveragents.domain.errors import PlanError
from cleveragents.domain.event import Notice
from cleveragents.domain.run_events import NodeStarted
from cleveragents.infrastructure.plan_journal import SqliteRunJournal
from cleveragents.infrastructure.store import Store
from unit.cli.plankit import ID, PlanTree, nodes

TWO = """
goal: Write two files
nodes:
  one: {actor: {scripted: [{write: one.txt, text: "1\\n"}, {print: hello}]}}
  two: {needs: [one], actor: {scripted: [{write: two.txt, text: "2\\n"}, {spend: 0.25}]}}
"""
BROKEN = """
goal: Break
nodes:
  good: {actor: {scripted: [{write: good.txt, text: "1\\n"}]}}
  bad: {needs: [good], actor: {scripted: [{fail: it is broken, category: tool.denied}]}}
"""


@pytest.fixture
def tree(tmp_path, monkeypatch, capsys) -> PlanTree:
    return PlanTree(tmp_path, monkeypatch, capsys)


def test_run_shows_each_node_and_ends_with_the_command_to_apply(tree):
    answer = tree.run_plan(TWO)
    plan_id = tree.plan_id
    head, one, two, end, _, hint = answer.err.splitlines()
    assert (answer.code, answer.out) == (0, "")
    assert head == f"plan {plan_id}  2 nodes, at most 8 at once"
    assert one.startswith("  ✓ one ")
    assert one.endswith("1 file")
    assert two.endswith("0.25 USD   1 file")
    assert end.endswith(": 2 of 2 nodes, 2 files, 0.25 USD")
    assert hint == (
        f"hint: Run `cleveragents diff {plan_id}` to review, then `cleveragents apply {plan_id}`"
    )
    assert not (tree.root / "one.txt").exists()


def test_run_with_yes_applies_the_changes(tree):
    answer = tree.run_plan(TWO, "--yes")
    assert answer.code == 0
    assert "Applied 2 files" in answer.err
    assert tree.read("two.txt") == "2\n"
    assert tree.run("list", "--json").records[0]["state"] == "applied"
    assert tree.run("undo").code == 0
    assert tree.run("list", "--json").records[0]["state"] == "reverted"


@pytest.mark.parametrize("flags", [(), ("--yes",)], ids=["look", "apply"])
def test_run_tells_once_of_links_that_lead_out_and_of_what_was_left_out(tree, flags):
    answer = tree.run_plan(
        """
goal: try
nodes:
  - name: one
    actor: {command: "ln -s /etc out; git init -q own; touch own/file", shell: true}
""",
        *flags,
    )
    assert answer.code == 0
    assert answer.err.count("warning[CA4110]: 1 link leads out of the tree") == 1
    assert answer.err.count("  out  leads to /etc\n") == 1
    assert answer.err.count("  own  It belongs to another git repository\n") == 1


def test_run_that_may_not_apply_only_tells_how(tree):
    answer = tree.run_plan(f"apply: auto\n{TWO}", "--apply", "never")
    assert "hint: Run `cleveragents diff" in answer.err
    assert not (tree.root / "one.txt").exists()


def test_short_forms_review_and_apply_a_plan(tree):
    tree.run_plan(TWO)
    paths = [one["path"] for one in tree.run("diff", tree.plan_id, "--json").records]
    assert paths == ["one.txt", "two.txt"]
    answer = tree.run("apply", tree.plan_id)
    assert (answer.code, tree.read("one.txt")) == (0, "1\n")


def test_json_run_is_one_record_for_each_event(tree):
    answer = tree.run_plan(TWO, "--json")
    kinds = [one["kind"] for one in answer.records]
    assert answer.err == ""
    assert kinds == [
        "plan.started",
        "node.started",
        "log.line",
        "node.finished",
        "node.started",
        "spend.changed",
        "node.finished",
        "plan.ended",
        "run",
    ]
    end = answer.records[-1]
    assert (end["state"], end["exit_code"], end["files"]) == ("done", 0, 2)
    assert (end["nodes"], end["spent_usd"], end["error"]) == ({"done": 2}, "0.25", None)


def test_mistakes_are_all_told_before_anything_runs(tree):
    answer = tree.run_plan("goal: g\nnodes: {a: {actor: {oops: 1}, needs: [b]}}")
    assert answer.code == 2
    assert answer.err.startswith("error[CA1101]: Plan file `plan.yaml` breaks 2 rules")
    assert not (tree.root / ".cleveragents").exists()


def test_function_that_is_not_there_is_told_before_anything_runs(tree):
    answer = tree.run_plan("goal: g\nnodes: {a: {actor: {python: 'nowhere_to_be_found:f'}}}")
    assert answer.code == 3
    assert answer.err.startswith("error[CA5205]")
    assert tree.run("list").err.startswith("No plans yet")


def test_functions_are_found_beside_the_plan_file(tree):
    (tree.root / "beside_this_plan.py").write_text("def go(attempt):\n    return attempt.goal\n")
    assert tree.run_plan("goal: g\nnodes: {a: {actor: {python: 'beside_this_plan:go'}}}").code == 0
    records = tree.run("status", tree.plan_id, "--json").records
    assert records[1]["output"] == "g"


def test_failed_run_says_what_is_kept_and_how_to_go_on(tree):
    answer = tree.run_plan(BROKEN)
    plan_id = tree.plan_id
    assert answer.code == 1
    assert "  ✗ bad" in answer.err
    assert "error[CA5206]: " in answer.err
    assert "  kept    1 of 2 nodes, 1 changed file\n" in answer.err
    assert answer.err.endswith(f"then run `cleveragents resume {plan_id}`\n")


def test_cure_that_stands_in_the_plan_is_a_new_run_and_not_the_kept_plan(tree):
    text = TWO.replace("two: {needs: [one],", "two: {needs: [one], attempts_max: 1, writes: [a],")
    answer = tree.run_plan(text)
    assert answer.code == 1
    assert answer.err.endswith(
        "\nhint: Add a pattern to `writes` of node `two`: change the plan file, and run it anew;"
        f" or run `cleveragents resume {tree.plan_id}` to try once more as it is\n"
    )


@pytest.mark.parametrize(("is_left", "code"), [(True, 3), (False, 1)])
def test_resume_checks_what_is_left_before_anything_runs(tree, is_left, code):
    module = tree.root / "goes_away.py"
    module.write_text("def go(attempt):\n    return 1\n")
    gone, bad = ("[bad]", "[]") if is_left else ("[]", "[gone]")
    answer = tree.run_plan(
        "goal: Go\nnodes:\n"
        f"  gone: {{needs: {gone}, actor: {{python: 'goes_away:go'}}}}\n"
        f"  bad: {{needs: {bad}, actor: {{scripted: [{{fail: x, category: tool.denied}}]}}}}\n"
    )
    assert answer.code == 1
    module.unlink()
    del sys.modules["goes_away"]
    resumed = tree.run("resume")
    assert resumed.code == code
    assert resumed.err.startswith("error[CA5205]") is is_left


def test_exception_without_a_code_gets_one(tree):
    (tree.root / "raises_here.py").write_text("def go(attempt):\n    raise KeyError('x')\n")
    text = "goal: g\nnodes: {a: {attempts_max: 1, actor: {python: 'raises_here:go'}}}"
    assert "error[CA4301]: " in tree.run_plan(text).err


def test_node_that_wants_a_person_ends_with_the_code_for_a_choice(tree):
    text = BROKEN.replace(
        "{needs: [good],", "{needs: [good], recovery: {cures: {tool.denied: [ask]}},"
    )
    assert tree.run_plan(text).code == 5
    assert tree.run_plan(text, "--json").records[-1]["exit_code"] == 5


def test_node_that_used_up_its_own_budget_goes_on_as_the_hint_says(tree):
    text = TWO.replace("{spend: 0.25}", "{spend: 0.25}, {spend: 0.25}")
    answer = tree.run_plan(text, "--set", "nodes.two.budget.max_usd=0.30")
    assert answer.code == 4
    budget, resume = re.findall("`cleveragents ([^`]+)`", answer.err.splitlines()[-1])
    assert tree.run(*shlex.split(resume)).code == 4
    assert tree.run(*shlex.split(budget)).code == 0
    assert tree.run(*shlex.split(resume)).code == 0


def test_budget_that_is_used_up_stops_the_run_and_more_lets_it_go_on(tree):
    text = TWO.replace("{spend: 0.25}", "{spend: 0.25}, {spend: 0.25}")
    answer = tree.run_plan(text, "--budget-usd-max", "0.30")
    plan_id = tree.plan_id
    assert answer.code == 4
    assert "error[CA2103]: " in answer.err
    assert answer.err.endswith(f"hint: Run `cleveragents resume {plan_id} --budget-usd-max 0.6`\n")
    assert tree.run("resume", "--budget-usd-max", "0.80").code == 0
    assert "0.75 USD of 0.80 USD" in tree.run("status", plan_id).out


def test_deadline_stops_the_run_with_the_code_of_a_limit(tree):
    text = TWO.replace("{print: hello}", "{sleep_until_s: 600}")
    answer = tree.run_plan(text, "--deadline", "0.2")
    assert answer.code == 4
    assert "error[CA2201]: " in answer.err
    assert answer.err.endswith(f"resume {tree.plan_id}` to go on with what is left\n")


def test_warning_lists_what_it_is_about_as_people_do():
    notice = Notice("CA2106", "No bill came", {"scopes": ("day:1", "plan:p"), "charged": 1})
    assert warning(notice) == (
        "warning[CA2106]: No bill came\n  scopes   day:1, plan:p\n  charged  1"
    )


def test_warnings_are_shown_between_the_nodes(tree):
    soft = "budget: {limits: [{kind: plan, max_usd: 0.20, hard: false}]}"
    answer = tree.run_plan(f"{soft}\n{TWO}")
    assert answer.code == 0
    assert "warning[CA2104]: " in answer.err


def test_tree_that_cannot_be_read_is_told_and_not_taken_for_empty():
    class Changes:
        def difference(self, _: str) -> None:
            raise PlanError("It cannot be read", code="CA4108")

    model = RunModel(ID, nodes("a"))
    result = RunResult(plan_id=ID, state=PlanState.DONE, exit_code=0)
    with pytest.raises(PlanError, match="cannot be read"):
        RunEnd.of(result, model, Changes())


def test_conflict_is_shown_with_the_commands_that_decide_it(tree):
    (tree.root / "shared.txt").write_text("start\n")
    text = "goal: g\nnodes:\n"
    for name in "ab":
        text += f"  {name}:\n    actor: {{scripted: [{{write: shared.txt, text: {name}}}]}}\n"
        text += "    recovery: {cures: {plan.conflict: [ask]}}\n"
    answer = tree.run_plan(text)
    assert answer.code == 5
    assert "cleveragents changes resolve k-" in answer.err
    assert "hint: Decide each conflict by its command, then run `cleveragents resume" in answer.err
    conflict = tree.run("changes", "conflicts", "--json").records[0]["id"]
    tree.run("changes", "resolve", conflict, "--take", "theirs")
    assert tree.run("resume", "--yes").code == 0
    assert tree.read("shared.txt") in {"a", "b"}


def test_finished_plan_is_told_as_it_is_when_it_is_resumed(tree):
    tree.run_plan(TWO)
    answer = tree.run("resume", tree.plan_id, "--yes")
    assert answer.code == 0
    assert "2 done before" in answer.err
    assert "Applied 2 files" in answer.err


def test_resume_without_a_name_needs_exactly_one_unfinished_plan(tree):
    assert tree.run("resume").err.startswith("No plan to go on with")
    tree.run_plan(TWO)
    assert tree.run("resume").err.startswith("No plan to go on with")
    tree.run_plan(BROKEN)
    assert tree.run("resume", "--json").records[-1]["state"] == "failed"
    tree.run_plan(BROKEN)
    answer = tree.run("resume")
    assert answer.code == 2
    assert "2 plans are not finished" in answer.err


def test_resume_of_a_plan_that_is_not_there_says_where_to_look(tree):
    answer = tree.run("resume", "p-none")
    assert answer.code == 1
    assert "hint: Run `cleveragents list`" in answer.err


def test_flags_and_values_change_the_plan_by_its_own_rules(tree):
    text = TWO.replace("two: {needs", "two.b: {timeout_s: 3, needs")
    answer = tree.run_plan(
        text,
        *("--at-once", "3", "--deadline", "60", "--keep-going"),
        *("--set", "nodes.two.b.timeout_s=30", "--set", "defaults.attempts_max=7"),
    )
    assert "at most 3 at once" in answer.err
    with Store(tree.root / ".cleveragents" / "state.db") as store:
        plan = plan_of(SqliteRunJournal(store).get(tree.plan_id).source)
    assert (plan.deadline_s, plan.on_failure) == (60.0, "continue")
    assert plan.nodes[1].timeout_s == 30
    assert plan.defaults.attempts_max == 7


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--at-once", "0"), "must be a whole number of nodes from 1"),
        (("--set", "at_once"), "`--set` must be NAME=VALUE"),
        (("--set", "nodes.none.timeout_s=3"), "names no node of the plan"),
        (("--set", "goal.x=3"), "leads through `goal`, which has no parts"),
        (("--set", "goal=[1"), "has no value"),
        (("--budget-usd-max", "much"), "amount of USD"),
    ],
)
def test_change_that_breaks_a_rule_is_refused(tree, arguments, says):
    answer = tree.run_plan(TWO, *arguments)
    assert answer.code == 2
    assert says in answer.err


def test_first_interrupt_finishes_what_runs_and_resume_goes_on(tree, monkeypatch):
    """The signal comes as soon as the first node has started."""
    heard = RunDesk._hear

    def interrupted(desk: RunDesk, event: object) -> None:
        if isinstance(event, NodeStarted):
            os.kill(os.getpid(), signal.SIGINT)
        heard(desk, event)

    monkeypatch.setattr(RunDesk, "_hear", interrupted)
    answer = tree.run_plan(TWO)
    assert answer.code == 130
    assert "press Ctrl-C again" in answer.err
    assert answer.err.endswith(f"hint: Run `cleveragents resume {tree.plan_id}` to go on\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    monkeypatch.chdir(tree.root)
    answer = tree.run("resume")
    assert answer.code == 0
    assert "1 done before" in answer.err


def test_run_that_nobody_can_see_any_more_is_stopped_and_can_be_resumed(tree, monkeypatch):
    def gone(_: object) -> None:
        raise output.ReaderGone

    monkeypatch.setattr(output, "record", gone)
    assert tree.run_plan(TWO, "--json").code == 0
    monkeypatch.undo()
    monkeypatch.chdir(tree.root)
    assert tree.run("status", tree.plan_id, "--json").records[0]["state"] in {"paused", "done"}


def test_interrupt_before_the_run_began_counts():
    class Run:
        wishes = 0

        def request_stop(self, _: object) -> None:
            self.wishes += 1

    run, said = Run(), []
    stops = Stops(said.append)
    stops.ask()
    stops.on_open(run)
    stops.ask()
    assert (run.wishes, len(said)) == (2, 2)
    assert "at once" in said[1]


def test_run_of_nothing_to_read_is_refused(tree):
    assert tree.run("run", "none.yaml").code == 2
