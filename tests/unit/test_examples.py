"""Every example is run for real, in a repository of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "examples"


class Example:
    """An example in a fresh repository."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def cleveragents(self, *words: str) -> str:
        return self.run(sys.executable, "-m", "cleveragents", *words).stdout

    def run_plan(self) -> list[dict]:
        printed = self.cleveragents("run", "plan.yaml", "--yes", "--json")
        return [json.loads(line) for line in printed.splitlines()]

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")


@pytest.fixture
def example(tmp_path, request) -> Example:
    shutil.copytree(EXAMPLES / request.param, tmp_path, dirs_exist_ok=True)
    fresh = Example(tmp_path)
    fresh.run("git", "init", "-q", ".")
    fresh.run("git", "add", ".")
    return fresh


def ended(events: list[dict]) -> dict:
    return next(one for one in events if one["kind"] == "run")


@pytest.mark.parametrize("example", ["lint_fix"], indirect=True)
def test_lint_fix_tidies_every_file_at_once(example):
    end = ended(example.run_plan())
    assert (end["state"], end["files"]) == ("done", 2)
    assert example.read("theme/page.css") == "body {\n  color: black;\n}\n"
    assert example.read("theme/nav.css") == "nav {\n  float: left;\n}\n"


@pytest.mark.parametrize("example", ["codemod"], indirect=True)
def test_codemod_is_told_why_its_tests_failed_and_does_better(example):
    events = example.run_plan()
    assert ended(events)["state"] == "done"
    failed = [(one["node"], one["code"]) for one in events if one["kind"] == "attempt.failed"]
    assert sorted(failed) == [("rename[0]", "CA4203"), ("rename[1]", "CA4203")]
    assert '"price": net_price' in example.read("shop/item.py")
    assert "def net_price(one)" in example.read("shop/invoice.py")
    example.run(sys.executable, "-m", "unittest", "-q")


@pytest.mark.parametrize("example", ["agent"], indirect=True)
def test_agents_do_their_tasks_and_their_cost_is_in_the_books(example):
    end = ended(example.run_plan())
    assert (end["state"], end["files"], end["spent_usd"]) == ("done", 4, "0.05")
    assert example.read("shop/cart.py").startswith('"""The cart of the shop."""\n')
    assert (
        json.loads(example.cleveragents("status", end["plan"], "--json").splitlines()[0])[
            "limit_usd"
        ]
        == "0.50"
    )


def test_plan_in_python_runs_and_applies(tmp_path):
    program = EXAMPLES / "in_python.py"
    done = Example(tmp_path).run(sys.executable, str(program), ".")
    assert "page: done\n{'lines': 3}\n" in done.stdout
    page = (tmp_path / "greetings.md").read_text(encoding="utf-8")
    assert page == "# Greetings\n\n- Hello Ann\n- Hello Ben\n- Hello Cem\n"
