from __future__ import annotations

import os
import queue

import pytest

from cleveragents.application.services.attempt_order import Answer
from cleveragents.cli import question
from cleveragents.cli.run_desk import RunDesk
from cleveragents.domain.error_record import Action
from unit.cli.plankit import PlanTree
from unit.cli.screen import in_terminal

FAILING = """
goal: Ask
nodes:
  bad:
    attempts_max: 1
    actor: {scripted: [{write: a.txt, text: x}, {fail: it is broken, attempts: 2}]}
"""


@pytest.fixture
def tree(tmp_path, monkeypatch, capsys) -> PlanTree:
    return PlanTree(tmp_path, monkeypatch, capsys)


class Typist:
    """Types an answer each time that the screen ends with a prompt it knows."""

    def __init__(self, **answers: str) -> None:
        self._answers = {prompt.replace("_", " "): text for prompt, text in answers.items()}
        self._typed: dict[str, int] = {}

    def __call__(self, written: str, _: object, where: int) -> None:
        for prompt, text in self._answers.items():
            count = written.count(prompt)
            if count > self._typed.get(prompt, 0):
                self._typed[prompt] = count
                os.write(where, text.encode())


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("r\n", Answer(Action.RETRY)),
        ("Skip", Answer(Action.SKIP)),
        ("a", Answer(Action.ABORT)),
        ("use the other file\n", Answer(Action.FEEDBACK, "use the other file")),
        (" \n", None),
    ],
)
def test_lines_mean_what_the_question_says(line, answer):
    assert question.answered(line) == answer


def test_person_is_asked_and_the_changes_are_applied_after_a_yes(tree):
    (tree.root / "plan.yaml").write_text(FAILING)
    typist = Typist(a_word_for_the_actor="r\n", Apply_1_file="y\n")
    session = in_terminal(["run", "plan.yaml"], tree.root, typist)
    assert session.code == 0, session.written
    assert "Node `bad` failed after 2 attempts: it is broken" in session.screen
    assert "  s   skip it: what needs it goes on without it" in session.screen
    assert "Applied 1 file" in session.screen
    assert tree.read("a.txt") == "x"


def test_everything_but_a_yes_leaves_the_tree_alone(tree):
    (tree.root / "plan.yaml").write_text(FAILING)
    typist = Typist(a_word_for_the_actor="\n", Type_r="s\n")
    session = in_terminal(["run", "plan.yaml"], tree.root, typist)
    assert session.code == 0
    assert "1 skipped" in session.screen
    (tree.root / "plan.yaml").write_text(FAILING.replace(", {fail: it is broken, attempts: 2}", ""))
    session = in_terminal(["run", "plan.yaml"], tree.root, Typist(Apply_1_file="\n"))
    assert "hint: Run `cleveragents diff" in session.screen
    assert not (tree.root / "a.txt").exists()


def test_interrupt_ends_a_question_that_nobody_answers(tree):
    (tree.root / "plan.yaml").write_text(FAILING)
    session = in_terminal(["run", "plan.yaml"], tree.root, Typist(a_word_for_the_actor="\x03"))
    assert session.code in {1, 130}
    assert f"cleveragents resume {tree.plan_id}" in session.screen


def test_end_of_input_is_no_answer(tree):
    (tree.root / "plan.yaml").write_text(FAILING)
    session = in_terminal(["run", "plan.yaml"], tree.root, Typist(a_word_for_the_actor="\x04"))
    assert session.code == 1


def test_terminal_shows_one_state_of_each_node_however_often_it_was_drawn(tree):
    (tree.root / "plan.yaml").write_text(
        "goal: Draw\napply: never\nnodes:\n"
        + "".join(
            f"  n{number}: {{actor: {{scripted: [{{sleep_until_s: 0.{number}}}]}}}}\n"
            for number in range(1, 9)
        )
    )
    session = in_terminal(["run", "plan.yaml"], tree.root)
    lines = session.screen.splitlines()
    assert [line.split()[:2] for line in lines[1:9]] == [["✓", f"n{n}"] for n in range(1, 9)]
    assert len(lines) == 11
    assert session.written.count("\x1b[9A") >= 3, "it was not drawn while it ran"
    assert "\x1b[?" not in session.written, "a mode that somebody would have to restore"


@pytest.mark.parametrize(
    ("prompts", "seconds", "ends"),
    [(["begun"], 1, "✓ long"), (["begun", "press Ctrl-C again"], 600, "· long")],
    ids=["once", "twice"],
)
def test_ctrl_c_once_finishes_what_runs_and_twice_stops_now(tree, prompts, seconds, ends):
    """A command of the plan is not hit by what is typed: it has no terminal."""
    (tree.root / "plan.yaml").write_text(
        "goal: g\nnodes:\n"
        f"  long: {{actor: {{command: [sh, -c, 'echo begun; sleep {seconds}']}}}}\n"
        "  next: {needs: [long], actor: {scripted: [{print: x}]}}\n"
    )
    left = [*prompts]

    def type_once(written: str, _: object, where: int) -> None:
        if left and left[0] in written:
            left.pop(0)
            os.write(where, b"\x03")

    session = in_terminal(["run", "plan.yaml"], tree.root, type_once)
    assert session.code == 130, session.written
    assert f"  {ends}" in session.screen
    assert "  · next" in session.screen
    assert session.screen.endswith(f"hint: Run `cleveragents resume {tree.plan_id}` to go on")


def test_terminal_that_cannot_move_its_cursor_gets_plain_lines(tree):
    (tree.root / "plan.yaml").write_text("goal: g\nnodes: {a: {actor: {scripted: [{print: x}]}}}")
    session = in_terminal(["run", "plan.yaml"], tree.root, environment={"TERM": "dumb"})
    assert session.code == 0
    assert "\x1b" not in session.written
    assert "  ✓ a" in session.written


def test_watch_draws_a_plan_of_another_process_and_ends_with_it(tree):
    process = tree.start(
        "goal: g\nnodes: {a: {actor: {scripted: [{print: hello}, {sleep_until_s: 600}]}}}"
    )
    plan_id = tree.plan_id

    def cancel(written: str, *_: object) -> None:
        if "▸ a" in written and process.poll() is None:
            tree.run("cancel", plan_id, "--now")
            process.communicate(timeout=30)

    session = in_terminal(["watch"], tree.root, cancel)
    assert session.code == 0
    assert "hello" in session.written
    assert session.screen.splitlines()[-3].startswith("cancelled after ")


def test_question_that_nobody_hears_any_more_is_answered_by_nobody():
    desk = RunDesk.__new__(RunDesk)
    desk._inbox, desk._is_left = queue.SimpleQueue(), True
    assert desk._ask(None) == Answer()
