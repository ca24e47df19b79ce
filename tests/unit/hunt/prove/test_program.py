"""The program: one question on stdin, one answer on stdout, whatever the user's code does."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("frontrun", reason="needs the packages of the hunt")

from cleveragents.hunt.prove.regression import regression_test
from cleveragents.hunt.records import finding_from
from cleveragents.hunt.verdict import Finding, Verdict

if TYPE_CHECKING:
    from pathlib import Path

COUNTER = """
print("hello from the module")
class Box:
    def __init__(self):
        self.n = 0
    def add(self, amount: int):
        print("adding")
        self.n = self.n + amount
"""
LOCKED = """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.n = 0
    def add(self, amount: int):
        with self._lock:
            self.n = self.n + amount
"""


def ask(folder: Path, source: str, **options: Any) -> Finding:
    (folder / "boxes.py").write_text(source, encoding="utf-8")
    candidate = {
        "module": "boxes",
        "path": "boxes.py",
        "import_root": "",
        "owner": "Box",
        "state": ["n"],
        "patterns": ["read-modify-write"],
        "calls": ["add"],
        "accesses": [],
        "evidence": [],
        "line": 1,
    }
    done = subprocess.run(
        [sys.executable, "-m", "cleveragents.hunt.prove", str(folder)],
        input=json.dumps({"candidate": candidate, "options": {"budget_s": 5.0, **options}}),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return finding_from(json.loads(done.stdout))


def run_test(folder: Path) -> int:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null",
         f"--rootdir={folder}", str(folder / "test_again.py")],
        env={"PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        timeout=120,
        check=False,
    ).returncode  # fmt: skip


def test_what_the_code_prints_does_not_reach_the_answer(tmp_path: Path) -> None:
    assert ask(tmp_path, COUNTER).verdict is Verdict.PROVEN
    assert [path.name for path in tmp_path.iterdir()] == ["boxes.py"]


def test_files_that_the_code_writes_are_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    writing = "import tempfile\nopen('here', 'w').close()\nprint(tempfile.mkdtemp())\n"
    assert ask(tmp_path, writing + COUNTER).verdict is Verdict.PROVEN
    assert [path.name for path in tmp_path.iterdir()] == ["boxes.py"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import time\nwhile True: time.sleep(1)", "hung"),
        ("import os\nos._exit(3)", "exit code 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "signal 11"),
    ],
    ids=["hang", "exit", "crash"],
)
def test_a_module_that_ends_the_process_costs_one_candidate(
    tmp_path: Path, source: str, said: str
) -> None:
    finding = ask(tmp_path, source, budget_s=1.0, grace_s=1.0)
    assert finding.verdict is Verdict.GAVE_UP
    assert said in finding.reason


def test_the_regression_test_fails_on_the_race_and_passes_on_the_lock(tmp_path: Path) -> None:
    finding = ask(tmp_path, COUNTER)
    (tmp_path / "test_again.py").write_text(regression_test(finding), encoding="utf-8")
    assert run_test(tmp_path) == 1
    (tmp_path / "boxes.py").write_text(LOCKED, encoding="utf-8")
    assert run_test(tmp_path) == 0
    (tmp_path / "boxes.py").write_text(
        LOCKED.replace("import threading", "from threading import Lock").replace(
            "threading.Lock", "Lock"
        ),
        encoding="utf-8",
    )
    assert run_test(tmp_path) == 0


def test_a_finding_without_a_trial_has_no_regression_test(tmp_path: Path) -> None:
    finding = ask(tmp_path, "import no_such_module_here")
    with pytest.raises(ValueError, match="not tried"):
        regression_test(finding)
