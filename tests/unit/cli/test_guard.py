from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys

import pytest

from cleveragents.cli import guard as guard_command
from cleveragents.cli import output
from cleveragents.cli.guarded_bench import GuardedBench
from cleveragents.domain.command import Command
from cleveragents.infrastructure.sandbox import confinement
from unit.cli.fix_world import FixWorld

BILL = '{"type":"result","total_cost_usd":0.42,"usage":{"input_tokens":5,"output_tokens":7}}'


@pytest.fixture
def world(tmp_path, monkeypatch, capfd) -> FixWorld:
    world = FixWorld(tmp_path, capfd)
    monkeypatch.setenv("PATH", f"{world.bin}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(world.root)
    world.write("a.txt", "one\n")
    world.write("deep/b.txt", "b\n")
    return world


@pytest.fixture
def person(monkeypatch):
    def answers(text: str) -> None:
        monkeypatch.setattr(guard_command, "is_interactive", lambda: True)
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    return answers


def guard(world, script, *options):
    return world.run("guard", *options, "--", "sh", "-c", script)


def test_the_tree_is_untouched_until_the_command_that_is_told_applies_it(world):
    before = world.files
    answer = guard(world, "echo two >> a.txt; echo hello")
    assert (answer.code, world.files) == (0, before)
    assert answer.out == "hello\n"
    assert "a.txt | 1 +" in answer.err
    assert "it told of no cost" in answer.err
    command = re.search(r"`cleveragents (changes apply guard-\w+)`", answer.err).group(1)
    assert world.run(*command.split()).code == 0
    assert world.read("a.txt") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("answer", "says", "text"),
    [
        ("a\n", "Applied 1 file", "one\ntwo\n"),
        ("t\n", "Threw 1 file away", "one\n"),
        ("k\n", "Kept 1 file", "one\n"),
        ("\n", "Kept 1 file", "one\n"),
    ],
)
def test_a_person_decides_what_becomes_of_it(world, person, answer, says, text):
    person(answer)
    said = guard(world, "echo two >> a.txt")
    assert "exit code 0: [a]pply, [k]eep for later, or [t]hrow away?" in said.err
    assert says in said.err
    assert world.read("a.txt") == text


def test_what_was_thrown_away_cannot_be_applied_any_more(world):
    answer = guard(world, "echo two >> a.txt", "--discard", "--json")
    record = json.loads(answer.out)
    assert record["changes"] == "discard"
    world.run("changes", "apply", record["plan"])
    assert world.read("a.txt") == "one\n"


def test_the_exit_code_of_the_program_is_the_answer_and_its_work_is_not_lost(world):
    answer = guard(world, "echo two >> a.txt; exit 3", "--yes")
    assert answer.code == 3
    # What failed is not applied without a look.
    assert "Kept 1 file" in answer.err
    assert world.read("a.txt") == "one\n"


def test_yes_applies_what_went_well(world):
    answer = guard(world, "echo two >> a.txt", "--yes")
    assert answer.code == 0
    assert re.search(r"Run `cleveragents undo a-\w+` to take it back", answer.err)
    assert world.read("a.txt") == "one\ntwo\n"


def test_what_the_program_tells_that_it_cost_is_in_the_books(world):
    answer = guard(world, f"echo '{BILL}'; touch new", "--json")
    record = json.loads(answer.out)
    assert record["spent"] == "0.42 USD"
    assert "0.42 USD" in world.run("costs", "--by", "plan").out


def test_a_program_that_tells_of_too_much_is_not_applied(world):
    answer = guard(world, f"echo '{BILL}'; touch new", "--yes", "--budget-usd-max", "0.41")
    assert answer.code == 4
    assert "it told of 0.42 USD, more than 0.41 USD" in answer.err
    assert "new" not in world.files
    assert guard(world, f"echo '{BILL}'", "--budget-usd-max", "0.42").code == 0


def test_a_program_that_takes_too_long_is_ended_and_what_it_did_is_kept(world):
    answer = guard(world, "echo two >> a.txt; sleep 60", "--timeout", "0.3", "--yes")
    assert answer.code == 4
    assert "it reached its limit" in answer.err
    assert "Kept 1 file" in answer.err


def test_a_program_that_changes_nothing_leaves_nothing_to_decide(world):
    answer = guard(world, "true", "--yes")
    assert (answer.code, answer.out) == (0, "")
    assert "It changed no file" in answer.err


def test_the_program_starts_in_the_folder_of_its_user(world, monkeypatch):
    monkeypatch.chdir(world.root / "deep")
    guard(world, "echo more >> b.txt", "--yes")
    assert world.read("deep/b.txt") == "b\nmore\n"


def test_arguments_mean_themselves(world):
    """`${` begins a template in plans, and is nothing special here."""
    answer = world.run("guard", "--", "printf", "%s", "${nodes.x.output} ${")
    assert (answer.code, answer.out) == (0, "${nodes.x.output} ${")


@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_what_is_piped_in_is_passed_on(world, monkeypatch, tmp_path, kind):
    if kind == "file":
        (tmp_path / "input").write_text("given")
        stdin = (tmp_path / "input").open()
    else:
        reader, writer = os.pipe()
        os.write(writer, b"given")
        os.close(writer)
        stdin = os.fdopen(reader)
    with stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        answer = guard(world, "cat")
    assert answer.out == "given"
    assert ("waits for the end of its standard input" in answer.err) is (kind == "pipe")


def test_a_device_is_not_passed_on(world, monkeypatch):
    with open(os.devnull) as stdin:  # noqa: PTH123  # as a shell would
        monkeypatch.setattr(sys, "stdin", stdin)
        assert guard(world, "cat").out == ""


def test_only_variables_that_are_named_are_seen(world, monkeypatch):
    monkeypatch.setenv("MY_KEY", "mine")
    monkeypatch.setenv("OTHER", "other")
    answer = guard(world, 'echo "$MY_KEY-$OTHER"', "--env", "MY_KEY")
    assert answer.out == "mine-\n"
    store = (world.root / ".cleveragents" / "state.db").read_bytes()
    assert b"mine" not in store


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--timeout", "0"), 2, "`--timeout` must be more than 0"),
        (("--env", "NO_SUCH_VARIABLE"), 2, "`--env` must name a variable that is set"),
        (("--budget-usd-max", "much"), 2, "much"),
    ],
)
def test_what_is_asked_wrongly_is_refused_before_anything_runs(world, options, code, says):
    answer = guard(world, "touch new", *options)
    assert answer.code == code
    assert says in answer.err


def test_a_program_that_is_not_there_is_told_as_such(world):
    answer = world.run("guard", "--", "no-such-program")
    assert answer.code == 1
    assert "error[CA5008]" in answer.err


@pytest.mark.parametrize(
    ("script", "says"),
    [("echo two >> a.txt", "1 file kept as plan `guard-"), ("true", "nothing was changed")],
    ids=["changed", "unchanged"],
)
def test_an_interrupt_keeps_what_was_done_and_leaves_the_tree(
    world, monkeypatch, capfd, script, says
):
    run = GuardedBench.run

    def interrupted(self, *arguments, **options):
        run(self, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(GuardedBench, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        guard(world, script)
    assert f"interrupted: {says}" in capfd.readouterr().err
    assert world.read("a.txt") == "one\n"


def test_an_interrupt_before_the_program_began_has_nothing_to_keep(world, monkeypatch, capfd):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(GuardedBench, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        guard(world, "true")
    assert "interrupted: nothing was changed" in capfd.readouterr().err


@pytest.fixture
def without_bubblewrap(monkeypatch):
    monkeypatch.setattr(confinement, "probe_bubblewrap", lambda: "`bwrap` is not installed")


@pytest.mark.usefixtures("without_bubblewrap")
@pytest.mark.parametrize("setting", ["auto", "required"])
def test_where_nothing_confines_it_the_program_is_not_started(world, monkeypatch, setting):
    monkeypatch.setenv("CLEVERAGENTS_CONFINEMENT", setting)
    answer = guard(world, f"touch {world.root}/new")
    assert answer.code == 3
    assert "error[CA5006]: The program cannot be kept away from your files here" in answer.err
    assert "Install bubblewrap" in answer.err
    assert "new" not in world.files
    way_out = re.search(r"run `cleveragents (guard .*)`", answer.err).group(1)
    assert world.run(*shlex.split(way_out)).code == 0
    assert "new" in world.files


@pytest.mark.usefixtures("without_bubblewrap")
def test_who_wants_it_unconfined_is_warned_and_its_work_still_waits(world):
    answer = guard(world, "echo two >> a.txt", "--unconfined")
    assert answer.code == 0
    assert "warning[CA5006]: The program runs unconfined, by `--unconfined`" in answer.err
    assert "Kept 1 file" in answer.err
    assert world.read("a.txt") == "one\n"


def test_setting_that_confines_nothing_is_obeyed_with_a_warning(world, monkeypatch):
    monkeypatch.setenv("CLEVERAGENTS_CONFINEMENT", "off")
    answer = guard(world, "true")
    assert answer.code == 0
    assert "unconfined, by the setting `confinement = off`" in answer.err


class Inner:
    """A bench whose program prints a line and is done."""

    files: object = "files"
    is_closed = False

    def run(self, command, *, stop, on_output):
        assert stop is None
        on_output(b"line\n")
        return command

    def seal(self):
        return "c-1"

    def close(self):
        self.is_closed = True


def test_a_reader_that_went_away_does_not_end_the_program(monkeypatch):
    def gone(_):
        raise output.ReaderGone

    monkeypatch.setattr(output, "raw", gone)
    inner, heard = Inner(), []
    bench = GuardedBench(inner, b"in", {"A": "b"}, is_live=True)
    given = bench.run(Command(("x",)), on_output=heard.append)
    assert heard == [b"line\n"]
    assert bench.run(Command(("x",))) == given
    assert (given.stdin, given.env) == (b"in", {"A": "b"})
    assert (bench.files, bench.seal()) == ("files", "c-1")
    bench.close()
    assert inner.is_closed
