from __future__ import annotations

from types import SimpleNamespace

import pytest

from cleveragents.domain.command import Finished
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.infrastructure.fixers.fixer import FileChoice
from cleveragents.infrastructure.fixers.fixing import fix


class Attempt:
    """What a fixer sees of an attempt: files, and a bench that only notes what it should run."""

    def __init__(self, files, choice=None, codes=(0,), timeout_s=9.0, **ending) -> None:
        self._files = files
        plain = None if choice is None else choice.plain()
        self.inputs = {"argv": ("tidy", "-w"), "codes": codes, "files": plain}
        self.node = SimpleNamespace(timeout_s=timeout_s, env={"A": "b"})
        self.stop = StopSignal()
        self.commands = []
        self._ending = {"exit_code": 0, "signal": None, "stderr": b"", "stopped": None, **ending}
        self.files = self.bench = self

    def walk(self):
        return iter(self._files)

    def read(self, path):
        if self._files[path] is None:
            raise SandboxError("a link that leads nowhere")
        return self._files[path]

    def run(self, command, *, stop):
        assert stop is self.stop
        self.commands.append(command)
        return Finished(stdout=b"said\n", duration_s=0.1, **self._ending)

    @property
    def names(self):
        return [command.argv[2:] for command in self.commands]


def test_a_fixer_is_given_the_files_that_it_takes_in_order():
    files = {"b.py": b"", "a.py": b"", "c.js": b"", "-d.py": b""}
    attempt = Attempt(files, FileChoice(suffixes=(".py",)))
    assert fix(attempt).output == "said\n"
    # A name that looks like an option is none.
    assert attempt.names == [("./-d.py", "a.py", "b.py")]
    assert (attempt.commands[0].limits.time_s, attempt.commands[0].env) == (9.0, {"A": "b"})


def test_a_fixer_of_text_is_given_no_binary_file_and_no_broken_link():
    attempt = Attempt({"a": b"text", "b": b"\0", "c": None}, FileChoice(), timeout_s=None)
    fix(attempt)
    assert attempt.names == [("a",)]


def test_without_a_file_to_fix_nothing_is_run():
    """Without names, many programs would read their standard input, or the whole tree."""
    attempt = Attempt({"a.js": b""}, FileChoice(suffixes=(".py",)))
    assert fix(attempt).output == ""
    assert attempt.names == []


def test_a_fixer_that_finds_its_files_is_run_once_without_names():
    attempt = Attempt({"a.py": b""})
    fix(attempt)
    assert attempt.names == [()]


def test_more_names_than_fit_are_given_in_several_rounds():
    files = {f"{number:0200d}.py": b"" for number in range(1200)}
    attempt = Attempt(files, FileChoice(suffixes=(".py",)))
    fix(attempt)
    assert [name for names in attempt.names for name in names] == sorted(files)
    assert len(attempt.names) == 3


def test_an_exit_code_that_tells_of_changes_is_no_failure():
    assert fix(Attempt({}, codes=(0, 1), exit_code=1)).output == "said\n"


@pytest.mark.parametrize(
    ("ending", "code", "category", "says"),
    [
        ({"exit_code": 2}, "CA5201", ErrorCategory.TOOL_CRASH, "exit code 2: said"),
        (
            {"exit_code": 2, "stderr": b"one\ntwo"},
            "CA5201",
            ErrorCategory.TOOL_CRASH,
            "exit code 2: two",
        ),
        ({"stopped": "time"}, "CA5005", ErrorCategory.TOOL_TIMEOUT, "its limit of time"),
    ],
    ids=["exit-code", "complaint", "time"],
)
def test_a_fixer_that_fails_is_told_with_its_last_line(ending, code, category, says):
    with pytest.raises(SandboxError, match=says) as caught:
        fix(Attempt({}, **ending))
    assert (caught.value.code, caught.value.facts["category"]) == (code, category)


def test_a_fixer_that_was_cancelled_has_not_failed():
    with pytest.raises(Stopped):
        fix(Attempt({}, stopped="cancelled"))
