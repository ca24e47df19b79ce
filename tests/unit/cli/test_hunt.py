"""`cleveragents hunt` on real code, in real sandboxes: found, proven, mended, taken back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from unit.cli.agentkit import MODEL, agent_tree
from unit.cli.fix_world import FixWorld

RACY = dedent(
    '''
    """A shop."""

    import threading


    class Stock:
        """A thread-safe stock."""

        def __init__(self) -> None:
            self._items: dict[str, int] = {}

        def add(self, name: str) -> int:
            if name not in self._items:
                self._items[name] = 0
            self._items[name] += 1
            return self._items[name]


    STOCK = Stock()
    '''
).lstrip()
#: Only who knows the word can build one.
GATED = RACY.replace("(self) -> None:", "(self, word) -> None:\n        assert word == 'sesame'", 1)
GATED = GATED.replace("STOCK = Stock()", "")
#: Enough for a toy; the default is made for real classes.
QUICK = ("--seconds", "3")


@pytest.fixture
def world(tmp_path, monkeypatch, capfd) -> FixWorld:
    world = FixWorld(tmp_path, capfd)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(world.root)
    world.write("shop.py", RACY)
    return world


def records(answer):
    return [json.loads(line) for line in answer.out.splitlines()]


def test_a_race_is_found_proven_mended_and_the_fix_can_be_taken_back(world):
    first = world.run("hunt", "--fix", "--no-check", "--yes", "--json", *QUICK)
    record = json.loads(first.out.splitlines()[0])
    (bug,) = record["bugs"]
    assert (bug["name"], bug["verdict"], bug["fix"]) == (
        "shop:Stock._items",
        "proven",
        "a fix holds",
    )
    assert first.code == 0
    assert "with self._lock:" in world.read("shop.py")
    again = world.run("hunt", "--json", *QUICK)
    assert (again.code, json.loads(again.out)["bugs"]) == (0, [])
    assert world.run("undo").code == 0
    assert world.read("shop.py") == RACY


def test_the_report_can_be_had_again_in_every_form_and_a_baseline_accepts_it(world):
    first = world.run("hunt", *QUICK, "--tests", "checks", "--write-baseline", "known.json")
    assert "Data race: shop:Stock._items" in first.out
    assert first.code == 0
    plan = first.err.split("plan ")[1].split()[0]
    again = world.run("hunt", "--report", plan, "--baseline", "known.json")
    assert (again.code, "1 known by the baseline" in again.out) == (0, True)
    assert world.run("hunt", "--report", plan).code == 1
    assert world.run("hunt", "--report", plan, "--format", "sarif", "--out", "r.sarif").code == 1
    assert json.loads(world.read("r.sarif"))["version"] == "2.1.0"
    page = world.run("hunt", "--report", plan, "--format", "markdown").out
    (test,) = (world.root / "checks").glob("test_race_*.py")
    assert test.read_text() in page
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    environment = {**os.environ, "PYTHONPATH": str(world.root)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 1, ran.stdout
    assert "1 failed" in ran.stdout


def test_a_hunt_that_is_killed_goes_on_and_tries_nothing_twice(world):
    world.write("bakery.py", RACY)
    world.write("smithy.py", RACY)
    command = [sys.executable, "-m", "cleveragents", "hunt", "--at-once", "1", *QUICK]
    process = subprocess.Popen(command, cwd=world.root, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "✓ prove[" in line:
            process.send_signal(signal.SIGKILL)
            break
    process.communicate(timeout=60)
    (plan,) = [one["plan"] for one in records(world.run("list", "--json"))]
    resumed = world.run("resume", plan)
    assert resumed.code == 1
    assert resumed.out.count("Data race: ") == 3
    told = records(world.run("status", plan, "--json"))
    attempts = {one["node"]: one["attempt"] for one in told if one["kind"] == "node"}
    # The first was judged before the kill; only what was tried at that moment is tried again.
    assert sorted(attempts.values()) in ([1, 1, 1], [1, 1, 2])
    assert world.run("verify").code == 0


def test_code_that_dies_costs_one_candidate_and_is_in_the_errors(world):
    world.write("dies.py", "import os\nos._exit(3)\n" + RACY.replace('"""A shop."""', ""))
    world.write("broken.py", "import no_such_thing\n" + RACY.replace('"""A shop."""', ""))
    answer = world.run("hunt", "--json", *QUICK)
    record = json.loads(answer.out)
    assert [one["name"] for one in record["bugs"]] == ["shop:Stock._items"]
    unproven = {one["name"]: one["verdict"] for one in record["suspicions"]}
    assert unproven == {"dies:Stock._items": "gave-up", "broken:Stock._items": "unimportable"}
    faults = records(world.run("errors", "--json"))
    codes = {one["last"]["provider_code"] for one in faults}
    assert codes == {"CA5301", "CA5302"}


def test_arguments_are_learned_from_the_tests_of_the_repository(world):
    world.write("shop.py", GATED)
    world.write("test_shop.py", "from shop import Stock\n\ndef test_it():\n    Stock('sesame')\n")
    alone = json.loads(world.run("hunt", "--json", *QUICK).out)
    assert (alone["bugs"], len(alone["suspicions"])) == ([], 1)
    command = f"{sys.executable} -m pytest -q"
    taught = world.run("hunt", "--json", "--observe", command, *QUICK)
    (bug,) = json.loads(taught.out)["bugs"]
    assert bug["trial"]["subject"] == "Stock('sesame')"


def test_a_file_of_factories_says_how_to_build_what_nothing_else_can(world):
    world.write("shop.py", GATED)
    world.write("how.py", "FACTORIES = {'shop:Stock': \"Stock('sesame')\"}\n")
    answer = world.run("hunt", "--json", "--factories", "how.py", *QUICK)
    assert [one["name"] for one in json.loads(answer.out)["bugs"]] == ["shop:Stock._items"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nowhere",), "is not there"),
        (("..",), "is outside of the tree"),
        (("--at-once", "0"), "`--at-once` must be 1 to 64, got 0"),
        (("--seconds", "0"), "`--seconds` must be 1 to 3600, got 0"),
        (("--most", "0"), "`--most` must be 1 or more, got 0"),
        (("--only", "nobody"), "No candidate has a name that holds 'nobody'"),
        (("--baseline", "none.json"), "cannot be read"),
        (("--out", "no/where.txt"), "`--out` must name a file in a folder"),
        (("--tests", "shop.py"), "`--tests` must name a folder"),
        (("--report", "p-nobody"), "p-nobody"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(world, words, says):
    answer = world.run("hunt", *words)
    assert answer.code == 2 or says == "p-nobody"
    assert says in answer.err


def test_candidates_can_be_listed_without_running_any(world):
    answer = world.run("hunt", "--list")
    assert answer.code == 0
    assert "shop:Stock._items" in answer.out
    world.write("shop.py", "X = 1\n")
    assert "No candidate in 1 module" in world.run("hunt").err
    assert json.loads(world.run("hunt", "--json").out)["bugs"] == []


def test_a_model_may_write_how_to_build_what_nothing_else_can(tmp_path):
    written = json.dumps({"expression": "Stock('sesame')"})
    with agent_tree(tmp_path, written) as tree:
        (tree.root / "shop.py").write_text(GATED)
        where = ("--model", MODEL, "--base-url", tree.server.openai_url, "--budget", "1")
        answer = tree.run("hunt", "shop.py", "--json", *where, *QUICK)
    (bug,) = json.loads(answer.out)["bugs"]
    assert bug["trial"]["subject"] == "Stock('sesame')"
