from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from cleveragents import __version__
from cleveragents.cli import failure, log_file, main
from cleveragents.cli.main import run


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ends_with(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["cleveragents", *arguments])
    with pytest.raises(SystemExit) as caught:
        run()
    return caught.value.code


def test_version_is_printed(monkeypatch, capsys):
    assert ends_with(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"cleveragents {__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("--unknown",), ("demo", "--actors", "many")])
def test_asking_wrongly_ends_with_2(monkeypatch, capsys, arguments):
    assert ends_with(monkeypatch, *arguments) == 2
    assert "usage: cleveragents" in capsys.readouterr().err


def test_settings_are_shown_for_people_and_for_programs(monkeypatch, capsys):
    monkeypatch.setenv("CLEVERAGENTS_DAILY_BUDGET_USD", "2.5")
    assert ends_with(monkeypatch, "settings") == 0
    text = capsys.readouterr().out
    assert "daily_budget_usd         2.50 USD     environment CLEVERAGENTS_DAILY_BUDGET_USD" in text
    assert "monthly_budget_usd       none" in text
    assert ends_with(monkeypatch, "settings", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0]["value"] == "2.50 USD"


def test_our_error_is_shown_with_code_facts_and_hint(monkeypatch, capsys):
    monkeypatch.setenv("CLEVERAGENTS_ZONE", "Mars")
    assert ends_with(monkeypatch, "settings") == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "error[CA1001]: The setting `zone` must be a name of the time zone database, got 'Mars'\n"
        "  setting  zone\n"
        "  value    Mars\n"
        "  source   environment CLEVERAGENTS_ZONE\n"
        "\nhint: Set `zone` in `cleveragents.toml`, or `CLEVERAGENTS_ZONE`\n"
    )


def test_our_error_is_a_record_for_programs(monkeypatch, capsys):
    monkeypatch.setenv("CLEVERAGENTS_ZONE", "Mars")
    assert ends_with(monkeypatch, "settings", "--json") == 3
    assert json.loads(capsys.readouterr().out)["code"] == "CA1001"


def test_unexpected_error_shows_no_stack_and_keeps_a_redacted_report(monkeypatch, capsys, home):
    secret = "sk-" + "proj-" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4"

    def broken(_: object) -> int:
        raise LookupError(f"with {secret}")

    monkeypatch.setattr("cleveragents.cli.settings.show_settings", broken)
    assert ends_with(monkeypatch, "settings") == 70
    shown = capsys.readouterr().err
    assert "error[CA9001]: Unexpected error" in shown
    assert "Traceback" not in shown
    (log,) = (home / "state" / "cleveragents" / "log").iterdir()
    entry = json.loads(log.read_text())
    assert "LookupError" in entry["trace"]
    assert secret not in entry["trace"]
    assert entry["report"] in shown
    assert str(log) in shown


def test_report_that_cannot_be_written_is_said(capsys, home):
    (home / "state").write_text("a file where a folder should be")
    assert failure.fail(LookupError("x"), as_json=False) == 70
    assert "log     not written:" in capsys.readouterr().err


def test_reports_are_kept_in_the_state_folder_of_the_user(monkeypatch, home):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(home))
    assert log_file.log_folder() == home / ".local" / "state" / "cleveragents" / "log"


def test_interrupt_ends_with_130():
    """In a process of its own, for it may leave at once."""
    program = (
        "from cleveragents.cli import main, settings\n"
        "def interrupted(_): raise KeyboardInterrupt\n"
        "settings.show_settings = interrupted\n"
        "main.run()"
    )
    done = subprocess.run([sys.executable, "-c", program, "settings"], check=False)
    assert done.returncode == 130


def test_error_without_facts_or_hint_is_one_line(capsys):
    assert main.main(["demo", "--actors", "257"]) == 2
    assert capsys.readouterr().err == ("error[CA1005]: `--actors` must be 8 to 64, got 257\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_work_is_done_although_a_standard_stream_is_closed(tmp_path, closed):
    """No file of ours may take its number: the command would read or write that file."""
    actor = "{command: [sh, -c, 'cat; echo told; echo told >&2; echo made > made']}"
    plan = f"goal: Greet\nnodes: {{greet: {{actor: {actor}}}}}\n"
    (tmp_path / "plan.yaml").write_text(plan, encoding="utf-8")
    line = f"exec {sys.executable} -m cleveragents run plan.yaml --yes {closed}"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made").read_text() == "made\n"
    verified = [sys.executable, "-m", "cleveragents", "verify"]
    assert subprocess.run(verified, cwd=tmp_path, capture_output=True, check=False).returncode == 0


def test_character_that_the_terminal_cannot_show_does_not_end_the_work(tmp_path):
    plan = "goal: Greet\nnodes: {greet: {actor: {scripted: [{print: hello}]}}}\n"
    (tmp_path / "plan.yaml").write_text(plan, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "cleveragents", "run", "plan.yaml"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert r"\u2713 greet" in done.stderr
