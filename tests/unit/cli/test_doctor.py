from __future__ import annotations

import pytest

from cleveragents.cli import doctor
from cleveragents.infrastructure.machine import Check


@pytest.fixture
def found(monkeypatch):
    """Whatever the machine has: what was found is told by the test."""
    checks = [Check("git", True, "git version 9", basic=True)]
    monkeypatch.setattr(doctor, "look", lambda *_: tuple(checks))
    return checks


@pytest.mark.usefixtures("found")
def test_machine_is_told_as_a_table(terminal):
    answer = terminal.run("doctor")
    assert answer.code == 0
    assert answer.out == (
        "what      state  found\n"
        "settings  ok     every one keeps its rule\n"
        "git       ok     git version 9\n"
    )
    assert answer.err == "\nEverything works\n"


def test_optional_thing_that_is_missing_is_no_failure(terminal, found):
    found.append(Check("rg", False, "`rg` is not installed", "Install ripgrep"))
    answer = terminal.run("doctor")
    assert answer.code == 0
    assert "rg        missing  `rg` is not installed\n" in answer.out
    assert answer.err == "\nhint: Install ripgrep\n"


def test_basic_thing_that_does_not_work_ends_with_3(terminal, found):
    found.append(Check("store", False, "is damaged", "Put back a backup", basic=True))
    answer = terminal.run("doctor", "--json")
    assert answer.code == 3
    assert answer.records[-1] == {
        "kind": "check",
        "name": "store",
        "state": "broken",
        "found": "is damaged",
        "hint": "Put back a backup",
        "basic": True,
    }


@pytest.mark.usefixtures("found")
def test_settings_that_break_a_rule_are_told_beside_the_rest(terminal, monkeypatch):
    monkeypatch.setenv("CLEVERAGENTS_ZONE", "Mars")
    answer = terminal.run("doctor")
    assert answer.code == 3
    assert "settings  broken  The setting `zone` must be" in answer.out
    assert "git       ok" in answer.out
    assert "hint: Set `zone`" in answer.err


def test_this_machine_works_and_nothing_is_left(terminal, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    assert terminal.run("doctor").code == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_where_nothing_was_ever_run_there_is_nothing_to_clean(terminal):
    answer = terminal.run("doctor", "--clean")
    assert answer.code == 0
    assert "Nothing to clean yet" in answer.err
