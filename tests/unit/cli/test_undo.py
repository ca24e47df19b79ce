from __future__ import annotations

import pytest

from unit.infrastructure.changes.worlds import PLAN, text, world


@pytest.fixture
def here(terminal, tmp_path):
    """A plan that two actors worked on, applied; commands run from a folder deep inside."""
    with world(tmp_path) as opened:
        opened.work({"app.txt": text(l3="ann"), "ann.txt": b"ann\n"}, "ann")
        opened.work({"app.txt": text(l3="ann", l10="bob")}, "bob")
        opened.applies.apply(PLAN)
        opened.terminal = terminal
        yield opened


def pasted(terminal, err: str):
    """Run the command that the hint tells."""
    (command,) = [part for part in err.split("`") if part.startswith("cleveragents ")]
    return terminal.run(*command.split()[1:])


def test_last_apply_is_taken_back_and_put_back_by_the_commands_that_are_told(terminal, here):
    answer = terminal.run("undo")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("Took back 2 files of plan `p-1`\n\nhint: Run `cleveragents undo")
    assert here.read("app.txt") == text()
    answer = pasted(terminal, answer.err)
    assert answer.err.startswith("Put back 2 files of plan `p-1`\n")
    assert "to take that back\n" in answer.err
    assert here.read("app.txt") == text(l3="ann", l10="bob")
    assert pasted(terminal, answer.err).err.startswith("Took back 2 files")
    assert here.read("app.txt") == text()


def test_part_of_an_actor_is_taken_back_and_put_back(terminal, here):
    answer = terminal.run("undo", "--actor", "ann")
    assert answer.err.startswith("Took back 2 files of `ann` of plan `p-1`\n")
    assert here.read("app.txt") == text(l10="bob")
    assert pasted(terminal, answer.err).err.startswith("Put back 2 files of plan `p-1`\n")
    assert here.read("app.txt") == text(l3="ann", l10="bob")


def test_undo_of_what_the_user_took_back_by_hand_is_only_written_down(terminal, here):
    here.write("app.txt", text())
    (here.root / "ann.txt").unlink()
    answer = terminal.run("undo")
    assert answer.err.startswith("Took back 0 files of plan `p-1`: the tree was so already\n")


def test_named_plan_is_undone_alone(terminal, here):
    here.work({"src/one.py": b"one = 11\n"}, plan="p-2")
    here.applies.apply("p-2")
    assert terminal.run("undo", PLAN).code == 0
    assert here.read("app.txt") == text()
    assert here.read("src/one.py") == b"one = 11\n"
    assert terminal.run("undo", PLAN, "--actor", "ann").code == 1
    assert terminal.run("undo", "p-2", "--actor", "ann").code == 0
    assert here.read("src/one.py") == b"one = 1\n"


@pytest.mark.usefixtures("here")
def test_record_tells_how_to_take_it_back(terminal):
    (record,) = terminal.run("undo", "--json", "--actor", "bob").records
    assert (record["kind"], record["plan"], record["of"], record["actors"], record["files"]) == (
        "revert",
        PLAN,
        None,
        ["bob"],
        1,
    )
    assert record["take_back"] == f"cleveragents undo {record['id']}"


@pytest.mark.parametrize("part", [(), ("--actor", "ann")], ids=["whole", "part"])
def test_dry_run_shows_and_changes_nothing(terminal, here, part):
    answer = terminal.run("undo", "--dry-run", *part)
    assert "2 files changed" in answer.out
    assert answer.err == "Nothing was changed: this is what would be\n"
    records = terminal.run("undo", "--dry-run", "--json", *part).records
    assert [(one["path"], one["dry_run"]) for one in records] == [
        ("ann.txt", True),
        ("app.txt", True),
    ]
    assert here.read("app.txt") == text(l3="ann", l10="bob")
    assert len(here.applies.applies()) == 1


def test_overlap_is_told_and_taken_by_the_hint(terminal, here):
    here.write("app.txt", text(l3="you", l10="bob"))
    answer = terminal.run("undo", "--actor", "ann")
    assert (answer.code, answer.out) == (5, "")
    assert "error[CA4103]: What 'ann' changed was edited in the same place since" in answer.err
    assert "`cleveragents undo p-1 --actor=ann --take plan`" in answer.err
    assert terminal.run("undo", PLAN, "--actor=ann", "--take", "plan").code == 0
    assert here.read("app.txt") == text(l10="bob")


@pytest.mark.parametrize("some", [True, False], ids=["plans", "no-plans"])
def test_name_that_nothing_has_is_refused(terminal, request, some):
    if some:
        request.getfixturevalue("here")
    answer = terminal.run("undo", "p-9")
    assert (answer.code, answer.out) == (1, "")
    assert "error[CA4107]" in answer.err


def test_nothing_to_take_back_is_told(terminal):
    answer = terminal.run("undo")
    assert (answer.code, answer.out) == (1, "")
    assert "error[CA4108]: Nothing of any plan is in the tree" in answer.err
    assert not terminal.path.parent.exists()
