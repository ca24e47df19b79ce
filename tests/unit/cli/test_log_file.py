from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from cleveragents.cli.log_file import LogFile, kept_log, write_entry
from cleveragents.cli.main import main
from unit.cli.plankit import PlanTree

MANY = "goal: g\nat_once: 4\nnodes:\n" + "".join(
    f"  n{number}: {{actor: {{command: [sh, -c, 'sleep 0.3; echo x > f{number}']}}}}\n"
    for number in range(20)
)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state"


def entries(state) -> list[dict]:
    (path,) = (state / "cleveragents" / "log").iterdir()
    return [json.loads(line) for line in path.read_text().splitlines()]


def ends(monkeypatch, command) -> int:
    monkeypatch.setattr("cleveragents.cli.settings.show_settings", command)
    return main(["settings"])


def in_a_thread(name: str, work) -> None:
    thread = threading.Thread(target=work, name=name)
    thread.start()
    thread.join()


def broken() -> None:
    raise LookupError("nobody looked")


def test_state_folder_that_is_deleted_during_a_run_shows_one_error_and_no_stack(
    tmp_path, monkeypatch, capsys, state
):
    (tmp_path / "tree").mkdir()
    tree = PlanTree(tmp_path / "tree", monkeypatch, capsys)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    process = tree.start(MANY)
    # As a user would: the tree may well change while it is deleted.
    subprocess.run(["rm", "-rf", ".cleveragents"], cwd=tree.root, check=False)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert err.count("error[CA") == 1


def test_what_is_logged_goes_to_the_file_and_is_told_by_its_id(monkeypatch, capsys, state):
    def command(_):
        logging.getLogger("cleveragents.x").error("no %s", "luck", exc_info=LookupError("gone"))
        return 0

    assert ends(monkeypatch, command) == 0
    (entry,) = entries(state)
    assert (entry["message"], "LookupError" in entry["trace"]) == ("no luck", True)
    shown = capsys.readouterr().err
    assert shown.startswith("warning: More went wrong beside the work\n")
    assert entry["report"] in shown


def test_what_only_warns_is_written_and_not_told(monkeypatch, capsys, state):
    def command(_):
        logging.getLogger("x").warning("careful")
        return 0

    assert ends(monkeypatch, command) == 0
    assert entries(state)[0]["message"] == "careful"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("before", "after"), [(0, 70), (4, 4)], ids=["success", "failure"])
def test_thread_of_ours_that_dies_makes_no_success(monkeypatch, capsys, state, before, after):
    def command(_):
        in_a_thread("ca-x", broken)
        return before

    assert ends(monkeypatch, command) == after
    shown = capsys.readouterr().err
    assert "error[CA9001]: Unexpected error in a thread of ours" in shown
    assert "Traceback" not in shown
    assert entries(state)[0]["report"] in shown


def test_thread_of_a_users_function_is_only_told(monkeypatch, capsys, state):
    def command(_):
        in_a_thread("mine", broken)
        return 0

    assert ends(monkeypatch, command) == 0
    assert "Traceback" not in capsys.readouterr().err
    assert entries(state)[0]["thread"] == "mine"


def test_error_that_nobody_can_catch_is_written_down(state):
    before = sys.unraisablehook
    with kept_log():
        sys.unraisablehook(SimpleNamespace(object="x", exc_value=None))
    assert sys.unraisablehook is before
    assert entries(state)[0]["thread"] == "of 'x'"


def test_log_that_cannot_format_its_record_does_not_end_the_work(state):
    log = LogFile()
    log.emit(logging.makeLogRecord({"msg": "%d", "args": ("no number",)}))
    assert not log.has_news
    assert not state.exists()


def test_entry_that_cannot_be_written_says_so(state):
    state.write_text("a file where a folder should be")
    assert write_entry(trace="x")["log"].startswith("not written: ")
