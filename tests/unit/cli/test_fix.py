from __future__ import annotations

import io
import json
import re
import sys

import pytest

from cleveragents.cli import fix as fix_command
from cleveragents.cli.fix_check import Checked
from cleveragents.cli.fix_run import FixerResult, FixRun
from cleveragents.cli.fix_view import TalkView
from cleveragents.domain.errors import SetupError
from cleveragents.infrastructure.sandbox import confinement
from unit.cli.fix_world import FixWorld

#: A fixer finds nothing to do in what it made itself.
APPEND = "grep -qs {0} {1} || echo {0} >> {1}"


@pytest.fixture
def world(tmp_path, monkeypatch, capfd) -> FixWorld:
    world = FixWorld(tmp_path, capfd)
    monkeypatch.setenv("PATH", f"{world.bin}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(world.root)
    return world


@pytest.fixture
def person(monkeypatch):
    """Somebody at a terminal, who answers what is given."""

    def answers(text: str) -> None:
        monkeypatch.setattr(fix_command, "is_interactive", lambda: True)
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    return answers


def test_what_passes_is_applied_and_what_breaks_the_check_is_held_back(world):
    world.tools(isort=APPEND.format("sorted", "a.txt"), black="rm needed.txt")
    world.write("needed.txt", "here\n")
    answer = world.run("fix", "--yes", "--check", "test -e needed.txt")
    assert answer.code == 1
    assert world.read("a.txt") == "sorted\n"
    assert world.read("needed.txt") == "here\n"
    assert re.search(r"✓ isort .* 1 file  check passes", answer.err)
    assert re.search(r"✗ black .* 1 file  held back: The check `\S*test -e needed.txt`", answer.err)
    assert re.search(r"Run `cleveragents undo a-\w+` to take it back", answer.err)


def test_what_was_held_back_can_be_looked_at_by_the_command_that_is_told(world):
    world.tools(black="rm needed.txt", isort=APPEND.format("x", "a.txt"))
    world.write("needed.txt", "here\n")
    answer = world.run("fix", "--check", "test -e needed.txt")
    command = re.search(r"left out  black: `cleveragents (.*)` shows it", answer.err).group(1)
    assert "-here" in world.run(*command.split()).out


def test_without_a_person_nothing_is_applied_and_the_command_to_apply_is_told(world):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    before = world.files
    answer = world.run("fix")
    assert (answer.code, world.files) == (0, before)
    assert "a.txt | 1 +" in answer.out
    command = re.search(r"Run `cleveragents (changes apply fix-\w+)`", answer.err).group(1)
    assert world.run(*command.split()).code == 0
    assert world.read("a.txt") == "tidy\n"


@pytest.mark.parametrize(("answer", "applied"), [("y\n", True), ("n\n", False), ("", False)])
def test_a_person_is_asked_once(world, person, answer, applied):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    person(answer)
    said = world.run("fix")
    assert "Apply 1 file? [y/N]" in said.err
    assert ("a.txt" in world.files) is applied


def test_a_dry_run_applies_nothing_and_asks_nobody(world, person):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    person("y\n")
    answer = world.run("fix", "--dry-run", "--diff")
    assert "a.txt" not in world.files
    assert "+tidy" in answer.out
    assert "[y/N]" not in answer.err


def test_two_fixers_of_one_place_both_get_in(world):
    """Whoever comes second works again on what the first made of it."""
    add = (
        "grep -q {0} a.txt || "
        'printf "%s {0}\\n" "$(cat a.txt)" > a.txt.new && mv a.txt.new a.txt 2>&-; true'
    )
    world.tools(black=add.format("black"), isort=add.format("isort"))
    world.write("a.txt", "start\n")
    answer = world.run("fix", "--yes")
    assert answer.code == 0
    assert sorted(world.read("a.txt").split()) == ["black", "isort", "start"]


@pytest.mark.parametrize(
    ("check", "says"),
    [
        ("sh -c 'echo broken; exit 1'", "red before and after: broken"),
        ("no-such-check", "not run: "),
    ],
    ids=["red", "gone"],
)
def test_what_no_check_can_judge_is_not_applied_without_a_person(world, check, says):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    answer = world.run("fix", "--yes", "--check", check)
    assert answer.code == 5
    assert "a.txt" not in world.files
    assert f"check  {says}" in answer.err
    assert "so nothing can be called checked" in answer.err
    assert "check passes" not in answer.err
    assert "Run `cleveragents fix --yes --no-check` to apply it unchecked" in answer.err
    assert world.run("fix", "--yes", "--no-check").code == 0
    assert world.read("a.txt") == "tidy\n"


def test_a_check_that_is_found_and_cannot_run_does_not_let_anything_pass(world):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    world.write("tests/conftest.py", "")
    answer = world.run("fix", "--yes", "--json")
    assert answer.code == 5
    assert json.loads(answer.out.splitlines()[-1])["unjudged"] is True
    assert "a.txt" not in world.files


def test_a_check_that_the_fixers_turn_green_lets_them_pass(world):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    answer = world.run("fix", "--yes", "--check", "test -e a.txt")
    assert answer.code == 0
    assert "check  passes  (checked 2 times)" in answer.err
    assert world.read("a.txt") == "tidy\n"


def test_all_that_fixers_make_is_checked_once(world):
    """A check for each would cost more than the fixers themselves."""
    names = ("black", "isort", "autoflake", "yapf")
    world.tools(**{name: APPEND.format(name, f"{name}.txt") for name in names})
    answer = world.run("fix", "--yes", "--json", "--check", "true")
    end = json.loads(answer.out.splitlines()[-1])
    assert (end["checks"], end["rounds"], end["settled"]) == (2, 2, True)
    assert all(world.read(f"{name}.txt") == f"{name}\n" for name in names)


def test_a_fixer_that_has_work_only_after_another_one_gets_it_done(world):
    """As a formatter does after a codemod."""
    world.tools(black="grep -qs new a.txt && echo tidy > a.txt; true", isort="")
    world.tool("isort", "grep -q old a.txt && echo new > a.txt; true")
    world.write("a.txt", "old\n")
    answer = world.run("fix", "--yes", "--check", "true")
    assert answer.code == 0
    assert world.read("a.txt") == "tidy\n"
    assert re.search(r"✓ black .* 1 file  round 2, on what others made", answer.err)


def test_fixers_that_undo_each_other_end_and_are_told_so(world):
    swap = "grep -q {0} a.txt && echo {1} > a.txt; true"
    world.tools(black=swap.format("one", "two"), isort=swap.format("two", "one"))
    world.write("a.txt", "one\n")
    answer = world.run("fix", "--check", "true")
    assert "warning: Fixers still undo each other's work after 3 rounds" in answer.err


def test_fixers_in_each_others_way_take_turns_in_the_next_round(world):
    """Each wants to add to one place that a third made."""
    add = "if test -e a.txt && ! grep -q {0} a.txt; then echo {0} >> a.txt; fi"
    world.tools(black=add.format("b"), isort=add.format("i"), yapf=APPEND.format("y", "a.txt"))
    answer = world.run("fix", "--yes")
    assert sorted(world.read("a.txt").split()) == ["b", "i", "y"]
    assert answer.code == 0


def test_a_fixer_that_fails_on_what_others_made_is_told(world):
    world.tools(black="! test -e a.txt", isort=APPEND.format("x", "a.txt"))
    answer = world.run("fix", "--no-check")
    assert answer.code == 1
    assert re.search(r"✗ black .* failed in round 2: .*exit code 1", answer.err)


def test_what_fails_in_addition_is_noticed_although_the_check_was_red(world):
    world.tools(black="echo FAILED t::new >> failures")
    world.write("failures", "FAILED t::old\n")
    answer = world.run("fix", "--yes", "--check", "sh -c 'cat failures; exit 1'")
    assert answer.code == 1
    assert "check  red before, and now also t::new" in answer.err
    assert "Nothing was applied: the fixers together break what worked before" in answer.err
    assert world.read("failures") == "FAILED t::old\n"


def test_fixers_that_break_the_check_only_together_are_not_applied(world):
    world.tools(black="touch one", isort="touch two")
    answer = world.run("fix", "--yes", "--check", "sh -c '! test -e one || ! test -e two'")
    assert answer.code == 1
    assert "one" not in world.files
    assert "break what worked before" in answer.err


@pytest.mark.parametrize("check", ["no-such-check", "python9.9 -m pytest"])
def test_a_check_that_cannot_run_is_never_green(world, check):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    answer = world.run("fix", "--check", check)
    assert "warning: The check is not run: " in answer.err
    assert "check  not run: " in answer.err
    assert "check passes" not in answer.err


def test_a_check_that_takes_too_long_is_red(world, monkeypatch):
    monkeypatch.setattr("cleveragents.cli.fix_check._CHECK_S_MAX", 0.2)
    world.tools(black="true")
    answer = world.run("fix", "--check", "sleep 60")
    assert "red already, before any fixer: it reached its limit of time" in answer.err


def test_a_check_that_is_found_but_not_installed_is_not_run(world):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    world.write("tests/conftest.py", "")
    answer = world.run("fix")
    assert "check  not run: `pytest` is not installed (tests/conftest.py)" in answer.err


def test_the_tests_of_python_look_at_the_sandbox_and_not_at_the_tree(world):
    """A package that is installed in place would be imported from the user's tree."""
    world.tools(black="mkdir -p src && touch src/new")
    world.tool("pytest", 'test "$PYTHONPATH" = src && echo 1 passed')
    world.write("src/old", "")
    world.write("tests/conftest.py", "")
    answer = world.run("fix")
    assert "check  passes" in answer.err


def test_a_fixer_that_fails_is_told_and_the_others_go_on(world):
    world.tools(isort=APPEND.format("sorted", "a.txt"), black="echo bad config >&2; exit 3")
    answer = world.run("fix", "--yes", "--no-check")
    assert answer.code == 1
    assert re.search(r"✗ black .* failed: .*exit code 3.*bad config", answer.err)
    assert "check  not run: it is not wanted (`--no-check`)" in answer.err
    assert world.read("a.txt") == "sorted\n"


def test_a_tidy_tree_is_said_to_be_so(world):
    world.tools(black="true")
    answer = world.run("fix", "--yes")
    assert (answer.code, answer.out) == (0, "")
    assert "· black" in answer.err
    assert "Nothing to fix: the tree is tidy" in answer.err


def test_a_tree_that_nothing_could_be_done_for_is_not_called_tidy(world):
    world.tools(black="exit 3")
    answer = world.run("fix")
    assert answer.code == 1
    assert answer.err.endswith("Nothing was changed\n")


def test_only_what_is_named_runs_and_the_rest_is_listed(world):
    world.tools(black=APPEND.format("tidy", "a.txt"), isort=APPEND.format("sorted", "b.txt"))
    answer = world.run("fix", "--only", "black", "--yes")
    assert {"a.txt", "pyproject.toml"} == set(world.files)
    assert "found  isort  pyproject.toml [tool.isort]  not run: only on request" in answer.err


def test_a_tree_without_fixers_is_no_failure(world):
    answer = world.run("fix")
    assert answer.code == 0
    assert "No fixer that this repository is configured for can run here" in answer.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--only", "blak"), "got 'blak'"),
        (("--check", "'"), '`--check` must be a command, got "\'"'),
        (("--check", " "), "`--check` must be a command, got none"),
    ],
)
def test_what_is_asked_wrongly_is_refused_before_anything_runs(world, arguments, says):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    answer = world.run("fix", *arguments)
    assert answer.code == 2
    assert says in answer.err


def test_records_tell_all_that_lines_tell(world):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    answer = world.run("fix", "--json", "--yes", "--check", "true")
    records = {one["kind"]: one for one in map(json.loads, answer.out.splitlines())}
    assert records["found"]["why"] == "pyproject.toml [tool.black]"
    assert records["found_check"]["why"] == "as given"
    assert (records["check"]["when"], records["check"]["exit_code"]) == ("after", 0)
    assert records["fixer"]["state"] == "merged"
    assert records["file"]["path"] == "a.txt"
    assert (records["fix"]["files"], records["fix"]["check"]) == (1, "passes")
    assert records["fix"]["applied"].startswith("a-")


def test_records_without_a_check_have_none(world):
    world.tools(black="true")
    answer = world.run("fix", "--json")
    records = [json.loads(line) for line in answer.out.splitlines()]
    assert [one["kind"] for one in records] == ["found", "fixer", "fix"]


def test_an_interrupt_leaves_the_tree_as_it_was(world, monkeypatch, capfd):
    def interrupted(*_):
        raise KeyboardInterrupt

    world.tools(black=APPEND.format("tidy", "a.txt"))
    before = world.files
    monkeypatch.setattr(FixRun, "go", interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.run("fix", "--yes")
    assert world.files == before
    assert "interrupted: nothing was applied" in capfd.readouterr().err


def test_a_notice_of_the_sandbox_is_shown(world, monkeypatch):
    world.tools(black=APPEND.format("tidy", "a.txt"))
    monkeypatch.setattr(
        "cleveragents.infrastructure.sandbox.confinement.probe_bubblewrap", lambda: "it is gone"
    )
    answer = world.run("fix", "--yes")
    assert "warning[CA5006]: Commands run unconfined: it is gone" in answer.err
    assert world.read("a.txt") == "tidy\n"


class TestChecked:
    RED = Checked(1, "2 failed", frozenset({"a", "b"}))

    @pytest.mark.parametrize(
        ("after", "before", "says", "worse"),
        [
            (Checked(0), Checked(0), "passes", False),
            (Checked(0), RED, "passes", False),
            (Checked(None), Checked(None), "not run", False),
            (Checked(None, "gone"), Checked(0), "not run: gone", True),
            (Checked(1, "no"), Checked(None), "fails: no", True),
            (RED, Checked(0), "fails: 2 failed", True),
            (RED, RED, "red before and after: 2 failed", False),
            (
                Checked(1, "", frozenset("abcdefg")),
                RED,
                "red before, and now also c, d, e and 2 more",
                True,
            ),
        ],
    )
    def test_a_check_is_told_in_the_light_of_how_it_was_before(self, after, before, says, worse):
        assert after.compared(before) == says
        assert after.is_worse_than(before) is worse


def test_a_fixer_that_had_to_work_again_is_said_to_have(capfd):
    TalkView().fixer(FixerResult(name="isort", state="merged", files=2, attempts=2))
    assert "2 files  (run again on what others made, attempt 2)" in capfd.readouterr().err


def test_a_terminal_is_one_on_both_sides(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert fix_command.is_interactive() is False


def test_check_with_words_of_a_shell_is_refused_with_the_way_to_run_it(world):
    """Split into arguments, it would pass whatever comes after the first program."""
    world.tools(isort=APPEND.format("sorted", "a.txt"))
    answer = world.run("fix", "--yes", "--check", "true && false")
    assert answer.code == 2
    assert "only a shell understands" in answer.err
    assert """--check 'sh -c '"'"'true && false'"'"''""" in answer.err


def test_settings_of_sandboxes_and_confinement_are_obeyed(world, monkeypatch):
    monkeypatch.setenv("CLEVERAGENTS_CONFINEMENT", "required")
    monkeypatch.setattr(confinement, "probe_bubblewrap", lambda: "it is not there")
    world.tools(isort=APPEND.format("sorted", "a.txt"))
    with fix_command.opened_workspace() as workspace:
        workspace.begin("p")
        with pytest.raises(SetupError) as caught, workspace.attempt("p", "n") as attempt:
            attempt.run("true")
    assert caught.value.code == "CA5006"
