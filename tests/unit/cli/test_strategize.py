from __future__ import annotations

import json
import os
import re
import shlex
import sys

import pytest

from cleveragents.cli.main import main
from cleveragents.domain.money import Money
from cleveragents.infrastructure.plan_files import load_plan
from cleveragents.testing import Cut
from unit.cli.agentkit import MODEL, PLAN, READ, RIGHT, agent_tree
from unit.cli.screen import in_terminal
from unit.cli.test_question import Typist

WRONG_PLAN = "goal: g\nnodes: {a: {actor: {oops: 1}}}"


@pytest.fixture
def needs_sdk():
    pytest.importorskip("pydantic_ai")


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """Commands run in this process, in the repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".cleveragents" / "state"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return capsys


@pytest.mark.usefixtures("needs_sdk")
class TestGoal:
    def test_goal_becomes_a_plan_that_is_kept_and_run_later_on_one_bill(self, tmp_path, here):
        with agent_tree(tmp_path, READ, WRONG_PLAN, PLAN, RIGHT, "Done", capsys=here) as tree:
            planned = tree.goal("--budget", "2")
            assert planned.code == 5, planned.err
            (path,) = tree.plans()
            shown = os.path.relpath(path, tmp_path)
            assert planned.err.endswith(f"hint: Run `cleveragents run {shown}`\n")
            assert planned.out == path.read_text()
            plan = load_plan(path).plan
            actor = plan.nodes[0].actor
            assert (actor.model, actor.base_url) == (MODEL, tree.server.openai_url)
            assert plan.goal == "Make the sum right"
            cost = tree.billed
            assert plan.budget.max_usd.pico == 2 * 10**12 - cost.pico
            assert f", for {cost}\n" in planned.out
            assert tree.read("sums.py") == "def add(a, b):\n    return a - b\n"

            assert tree.run("run", shown, "--yes").code == 0
            assert "a + b" in tree.read("sums.py")
            bills = tree.run("costs", "--by", "session", "--json").out.splitlines()
            spent = [one["spent_usd"] for one in map(json.loads, bills) if one.get("name")]
            assert [str(one).split()[0] for one in spent] == [str(tree.billed).split()[0]]

    def test_mistakes_go_back_to_the_planner_who_changes_nothing(self, tmp_path, here):
        with agent_tree(tmp_path, WRONG_PLAN, PLAN, capsys=here) as tree:
            assert tree.goal().code == 5
            first, second = tree.server.asked
            assert set(first.tools) == {"read_file", "list_files", "search_text", "context"}
            assert "got `oops`" in second.text
            assert "plan.yaml:2:" in second.text

    def test_third_answer_that_is_no_plan_is_the_last(self, tmp_path, here):
        with agent_tree(tmp_path, *[WRONG_PLAN] * 3, capsys=here) as tree:
            failed = tree.goal()
            assert failed.code == 1, failed.err
            assert "error[CA5204]" in failed.err
            assert len(tree.server.asked) == 3
            assert tree.plans() == []

    def test_planning_that_stopped_goes_on_and_ends_with_a_plan(self, tmp_path, here):
        with agent_tree(tmp_path, PLAN, capsys=here) as tree:
            stopped = tree.goal("--budget", "0.000001")
            assert stopped.code == 4, stopped.err
            went_on = tree.run("resume", "--budget", "1")
            assert went_on.code == 5, went_on.err
            (path,) = tree.plans()
            assert load_plan(path).plan.budget.max_usd.pico == 10**12 - tree.billed.pico

    def test_what_may_have_been_billed_for_planning_is_not_spent_once_more(self, tmp_path, here):
        """An answer that was lost is charged at its upper bound, also against the plan to come."""
        with agent_tree(tmp_path, (PLAN, Cut(after_events=1)), PLAN, capsys=here) as tree:
            planned = tree.goal("--budget", "2")
            assert planned.code == 5, planned.err
            by_plan = tree.run("costs", "--by", "plan", "--json").out.splitlines()
            (books,) = (one for one in map(json.loads, by_plan) if one.get("name"))
            spent = Money.of(books["spent_usd"].split()[0])
            assert spent.pico > tree.billed.pico
            (path,) = tree.plans()
            assert load_plan(path).plan.budget.max_usd.pico == 2 * 10**12 - spent.pico
            assert f"planned for {spent}" in planned.err

    def test_plan_that_cannot_be_kept_is_told_with_another_place(self, tmp_path, here):
        """Its folder went while the planner worked; `resume` writes it without a further answer."""
        (tmp_path / "gone").mkdir()

        def script(_):
            if (tmp_path / "gone").exists():
                (tmp_path / "gone").rmdir()
            return PLAN

        with agent_tree(tmp_path, capsys=here, script=script) as tree:
            failed = tree.goal("--out", "gone/plan.yaml")
            assert failed.code == 3, failed.err
            assert "error[CA1001]: The plan cannot be kept in `gone/plan.yaml`" in failed.err
            assert "No such file" in failed.err
            (tmp_path / ".cleveragents" / "plans").write_text("in the way")
            resume = shlex.split(re.findall("`([^`]+)`", failed.err.splitlines()[-1])[0])[1:]
            again = tree.run(*resume)
            assert again.code == 3, again.err
            assert "cannot be kept in" in again.err
            (tmp_path / ".cleveragents" / "plans").unlink()
            assert tree.run(*resume).code == 5
            assert len(tree.plans()) == len(tree.server.asked) == 1

    def test_yes_runs_and_applies_without_a_question(self, tmp_path, here):
        with agent_tree(tmp_path, PLAN, RIGHT, "Done", capsys=here) as tree:
            done = tree.goal("--yes", "--out", "plan.yaml")
            assert done.code == 0, done.err
            assert "a + b" in tree.read("sums.py")
            assert tree.read("plan.yaml").startswith("# Planned as p-")
            assert tree.plans() == []

    def test_records_name_the_file_and_the_cost(self, tmp_path, here):
        with agent_tree(tmp_path, PLAN, PLAN, capsys=here) as tree:
            for name in ("make-the-sum-right", "make-the-sum-right-2"):
                answer = tree.goal("--json")
                assert answer.code == 5
                last = json.loads(answer.out.splitlines()[-1])
                assert last["kind"] == "planned"
                assert last["file"] == str(tmp_path / ".cleveragents" / "plans" / f"{name}.yaml")
            assert float(last["spent_usd"]) > 0

    def test_person_edits_the_plan_and_lets_it_run(self, tmp_path):
        editor = tmp_path / "editor.py"
        editor.write_text(
            "import sys, pathlib\n"
            "path = pathlib.Path(sys.argv[1])\n"
            "path.write_text(path.read_text().replace('  fix:', '  mend:'))\n"
        )
        with agent_tree(tmp_path, PLAN, RIGHT, "Done") as tree:
            answers = iter(["?\n", "e\n", "r\n"])

            def react(written, _, where):
                react.seen = getattr(react, "seen", 0)
                if written.count("[l]eave it for later?") > react.seen:
                    react.seen += 1
                    os.write(where, next(answers).encode())
                typist(written, _, where)

            typist = Typist(Apply_1_file="y\n")
            words = ["run", "Make the sum right", "--model", MODEL]
            session = in_terminal(
                [*words, "--base-url", tree.server.openai_url],
                tmp_path,
                react,
                tree.environment(EDITOR=f"{sys.executable} {editor}"),
            )
            assert session.code == 0, session.written
            assert "✓ mend" in session.screen
            assert "a + b" in tree.read("sums.py")

    def test_person_leaves_a_plan_and_an_edit_that_is_wrong_is_not_run(self, tmp_path):
        with agent_tree(tmp_path, PLAN) as tree:
            answers = iter(["e\n", "e\n", "r\n", "\x04"])

            def react(written, _, where):
                react.seen = getattr(react, "seen", 0)
                if written.count("[l]eave it for later?") > react.seen:
                    react.seen += 1
                    path.write_text("goal: g\n") if react.seen == 3 else None
                    os.write(where, next(answers).encode())

            path = tmp_path / ".cleveragents" / "plans" / "make-the-sum-right.yaml"
            words = ["run", "Make the sum right", "--model", MODEL]
            session = in_terminal(
                [*words, "--base-url", tree.server.openai_url],
                tmp_path,
                react,
                tree.environment(EDITOR="there-is-no-such-editor"),
            )
            assert session.code == 5, session.written
            assert "cannot be started" in session.screen
            assert "error[CA1101]" in session.screen
            assert len(tree.server.asked) == 1


@pytest.fixture
def tree(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "there.yaml").write_text("goal: g\nnodes: {a: {actor: {command: ls}}}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tidy up"], "`tidy up` is no plan file, so it is a goal, and a goal needs `--model`"),
        (["  ", "--model", MODEL], "A goal must have 1 to 10,000 characters, got 0"),
        (["tidy", "--model", MODEL, "--out", "x.txt"], "`--out` must end in .yaml or .yml"),
        (["tidy", "--model", MODEL, "--out", "there.yaml"], "`--out` must name a new file"),
        (["tidy", "--model", MODEL, "--out", "no/x.yml"], "in a folder that is there"),
        (["there.yaml", "--model", MODEL], "`--model` is for a goal in words"),
        (["there.yaml", "--out", "x.yaml"], "`--out` is for a goal in words"),
    ],
)
def test_goal_that_is_asked_for_wrongly_costs_nothing(tree, capsys, words, says):
    assert main(["run", *words]) == 2
    assert says in capsys.readouterr().err
    assert not (tree / ".cleveragents").exists()


@pytest.mark.usefixtures("tree")
def test_missing_plan_file_is_no_goal(capsys):
    assert main(["run", "nowhere.yaml", "--model", MODEL]) == 2
    assert "is for a goal in words" in capsys.readouterr().err
    assert main(["run", "nowhere.yaml"]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.usefixtures("tree", "needs_sdk")
def test_model_without_a_key_is_told_before_anything_runs(capsys, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main(["run", "tidy up", "--model", MODEL]) == 3
    assert "error[CA1002]" in capsys.readouterr().err
