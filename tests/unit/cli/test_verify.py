from __future__ import annotations

import re
import shutil

import pytest

from cleveragents.domain.budget import Scopes
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from unit.cli.plankit import PlanTree
from unit.infrastructure.changes.worlds import PLAN, text, world


@pytest.fixture
def here(terminal, tmp_path):
    with world(tmp_path) as opened:
        opened.work({"app.txt": text(l3="ann")}, "ann")
        opened.applies.apply(PLAN)
        with DurableCostTracker(opened.store) as tracker:
            tracker.record_usage("0.5", Scopes(plan=PLAN))
        opened.terminal = terminal
        yield opened


def damage(here, sql: str) -> None:
    here.store.write(lambda tx: tx.execute(sql))


@pytest.mark.usefixtures("here")
def test_honest_books_hold_with_their_numbers(terminal):
    answer = terminal.run("verify")
    assert (answer.code, answer.err) == (0, "")
    money, errors, changes, trail = answer.out.splitlines()
    assert money == "money    holds   entries 1"
    assert errors == "errors   holds   errors 0, decisions 0"
    assert changes.startswith("changes  holds   changesets 1, changes ")
    assert trail.startswith("trail    holds ")


@pytest.mark.usefixtures("here")
def test_records_hold_all_counts(terminal):
    records = terminal.run("verify", "--json").records
    assert [one["book"] for one in records] == ["money", "errors", "changes", "trail"]
    assert records[0] == {
        "kind": "book",
        "book": "money",
        "holds": True,
        "counts": {"entries": 1},
        "wrong": [],
    }


def test_book_that_does_not_hold_ends_with_1_and_names_what_is_wrong(terminal, here):
    damage(here, "UPDATE accounts SET spent = 1 WHERE key = 'plan:p-1'")
    answer = terminal.run("verify")
    assert answer.code == 1
    assert answer.out.startswith("money    broken  entries 1\nerrors   holds ")
    assert "error[CA6004]: 1 of 4 books do not hold: money\n  money  `plan:p-1` keeps" in answer.err
    assert "hint: Run `cleveragents audit rebuild`" in answer.err
    assert terminal.run("audit", "rebuild").code == 0
    assert terminal.run("verify").code == 0


def test_several_books_are_told_together(terminal, here):
    damage(here, "UPDATE accounts SET spent = 1 WHERE key = 'plan:p-1'")
    damage(here, "DELETE FROM applies")
    answer = terminal.run("verify", "--json")
    assert answer.code == 1
    *books, error = answer.records
    assert [one["book"] for one in books if not one["holds"]] == ["money", "changes"]
    assert books[2]["wrong"][0]["says"].startswith("was applied by the trail")
    assert error["hint"] == "Compare the store with a backup to see what was changed"


def test_many_findings_are_cut_and_counted(terminal, here):
    for number in range(30):
        damage(here, f"INSERT INTO changesets (id, plan) VALUES ('c-{number:02}', 'p-1')")
    answer = terminal.run("verify")
    assert "  and   10 more; `--json` tells all\n" in answer.err
    assert "c-19" in answer.err
    assert "c-20" not in answer.err


def test_two_findings_about_one_thing_are_one_fact(terminal, here):
    damage(here, "UPDATE merges SET state = 'rejected'")
    assert "; " in terminal.run("verify").err


def test_lost_repository_is_found_and_not_made_anew(terminal, here):
    shutil.rmtree(here.changes.repository.folder)
    answer = terminal.run("verify")
    assert answer.code == 1
    assert "the folder of its versions is gone" in answer.err
    assert not here.changes.repository.folder.exists()


def test_text_that_is_no_text_any_more_breaks_its_book_only(terminal, here):
    damage(here, "UPDATE events SET kind = CAST(x'ff' AS TEXT) WHERE kind = 'plan.tree'")
    answer = terminal.run("verify")
    assert answer.code == 1
    assert "1 of 4 books do not hold: trail" in answer.err


def test_no_store_holds_nothing_and_is_not_made(terminal):
    answer = terminal.run("verify")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("Nothing to verify yet\n")
    assert not terminal.path.parent.exists()


def test_work_of_dead_processes_is_counted_and_can_be_collected(tmp_path, monkeypatch, capsys):
    """What a killed run left in its sandbox is no loss, but it is not in the books yet."""
    tree = PlanTree(tmp_path, monkeypatch, capsys)
    process = tree.start(
        "goal: g\nnodes:\n  slow: {actor: {command: [sh, -c, 'echo x > made; sleep 60']}}\n"
    )
    tree.wait_until(lambda: any(tmp_path.glob(".cleveragents/sandboxes/*/*/**/made")))
    process.kill()
    process.communicate()
    answer = tree.run("verify")
    assert answer.code == 0
    assert "uncollected 1" in answer.out
    assert "warning[CA5003]: 1 sandbox of a dead process holds work" in answer.err
    assert "Run `cleveragents doctor --clean` to put it there" in answer.err
    cleaned = tree.run("doctor", "--clean")
    assert cleaned.code == 0
    assert "Collected 1 sandbox of dead processes" in cleaned.err
    shown = re.search(r"Run `cleveragents (changes show [^`]+)`", cleaned.err).group(1)
    assert "slow" in tree.run(*shown.split()).out
    after = tree.run("verify")
    assert ("uncollected 0" in after.out, after.err) == (True, "")
    assert tree.run("doctor", "--clean", "--json").out == ""
