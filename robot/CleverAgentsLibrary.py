"""Keywords for journeys on the installed package: real processes, real exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp


class CleverAgentsLibrary:
    """Runs commands as a user does, in an empty folder, and looks at what they answer."""

    ROBOT_LIBRARY_SCOPE = "TEST"

    def __init__(self) -> None:
        self._top = Path(mkdtemp(prefix="cleveragents-robot-"))
        self._folder = self._top / "work"
        self._temporary = self._top / "tmp"
        self._folder.mkdir()
        self._temporary.mkdir()
        self._exit_code = 0
        self._stdout = ""
        self._stderr = ""

    def run_command(self, line: str, **environment: str) -> None:
        """Run a command line of the installed package."""
        program, *arguments = line.split()
        self._finish(self._start([self._installed(program), *arguments], environment))

    def run_python(self, *lines: str) -> None:
        """Run a program that uses the installed package."""
        self._finish(self._start([sys.executable, "-c", "\n".join(lines)], {}))

    def interrupt_command(self, line: str, after_line_with: str) -> None:
        """Run a command and press Ctrl-C as soon as it says something on stderr."""
        program, *arguments = line.split()
        process = self._start([self._installed(program), *arguments], {})
        assert process.stderr is not None
        for said in process.stderr:
            if after_line_with in said:
                process.send_signal(signal.SIGINT)
                break
        self._finish(process)

    def write_file(self, name: str, *lines: str) -> None:
        (self._folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def file_should_have_lines(self, name: str, *lines: str) -> None:
        found = (self._folder / name).read_text(encoding="utf-8").splitlines()
        assert found == list(lines), found

    def books_should_say_what_the_server_billed(self) -> None:
        report = json.loads(self._stdout)
        spent, billed = report["spent"], report["billed"]
        assert spent == billed != "0.00 USD", (spent, billed)

    def exit_code_should_be(self, code: str) -> None:
        shown = f"{self._stdout}\n{self._stderr}"
        assert self._exit_code == int(code), f"exit code {self._exit_code}\n{shown}"

    def stdout_should_contain(self, text: str) -> None:
        assert text in self._stdout, self._stdout

    def stderr_should_contain(self, text: str) -> None:
        assert text in self._stderr, self._stderr

    def stderr_should_not_contain(self, text: str) -> None:
        assert text not in self._stderr, self._stderr

    def stdout_should_be_empty(self) -> None:
        assert not self._stdout, self._stdout

    def json_field_should_be(self, field: str, value: str) -> None:
        found = json.loads(self._stdout)[field]
        assert str(found) == value, found

    def every_check_should_hold(self) -> None:
        checks = json.loads(self._stdout)["checks"]
        assert checks, "no checks in the report"
        assert all(checks.values()), checks

    def nothing_should_be_left_behind(self) -> None:
        assert list(self._folder.iterdir()) == []
        assert list(self._temporary.iterdir()) == []

    def clean_up(self) -> None:
        shutil.rmtree(self._top, ignore_errors=True)

    def _start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self._folder,
            env={
                **os.environ,
                "TMPDIR": str(self._temporary),
                "XDG_CACHE_HOME": str(self._top / "caches"),
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _finish(self, process: subprocess.Popen[str]) -> None:
        self._stdout, self._stderr = process.communicate(timeout=120)
        self._exit_code = process.returncode

    @staticmethod
    def _installed(program: str) -> str:
        return str(Path(sys.executable).parent / program)
