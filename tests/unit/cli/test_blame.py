from __future__ import annotations

import pytest

from cleveragents.domain.budget import Scopes
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from unit.infrastructure.changes.worlds import PLAN, text, world

FILE = "../../app.txt"


@pytest.fixture
def here(terminal, tmp_path):
    """A plan of one actor, applied; commands run from a folder deep inside."""
    with world(tmp_path) as opened:
        opened.changeset = opened.work({"app.txt": text(l3="a\x1b[2Jnn")}, "ann")
        opened.applied = opened.applies.apply(PLAN)
        opened.terminal = terminal
        yield opened


def test_every_line_stands_in_a_table_with_its_author(terminal, here):
    answer = terminal.run("blame", FILE)
    assert (answer.code, answer.err) == (0, "")
    head, *lines = answer.out.splitlines()
    assert head.split() == ["line", "plan", "by", "changeset", "applied", "text"]
    assert len(lines) == 20
    assert lines[0].split() == ["1", "-", "you", "-", "-", "line", "1"]
    assert lines[2].split()[:4] == ["3", "p-1", "ann", here.changeset]
    assert "\x1b" not in answer.out


def test_one_line_is_told_with_everything(terminal, here):
    with DurableCostTracker(here.store) as tracker:
        tracker.record_usage("0.31", Scopes(plan=PLAN, actor="ann"))
    source = '{"nodes": {"node-ann": {"actor": {"command": ["ruff", "format", "a b"]}}}}'
    insert = "INSERT INTO plans (id, source, digest, state, created) VALUES ('p-1', ?, '', '', 0)"
    here.store.write(lambda tx: tx.execute(insert, (source,)))
    answer = terminal.run("blame", f"{FILE}:3")
    head, *facts = answer.out.splitlines()
    assert head == r"3  a\x1b[2Jnn"
    told = {line.split()[0]: line.split(maxsplit=1)[1] for line in facts}
    assert told.pop("applied").endswith(f" by {here.applied.id}")
    assert told == {
        "by": "ann",
        "plan": "p-1",
        "node": "node-ann",
        "attempt": "-",
        "changeset": here.changeset,
        "cost": "0.31 USD, all attempts at the node",
        "command": "ruff format 'a b'",
    }


@pytest.mark.usefixtures("here")
def test_cost_that_nobody_recorded_is_unknown_not_nothing(terminal):
    assert "  cost       unknown\n" in terminal.run("blame", f"{FILE}:3").out
    (record,) = terminal.run("blame", f"{FILE}:3", "--json").records
    assert record["cost_usd"] is None


@pytest.mark.usefixtures("here")
def test_line_of_the_user_is_told_as_such(terminal):
    assert terminal.run("blame", f"{FILE}:4").out == "4  line 4\n  by  you\n"


def test_prompt_is_told_on_one_line(terminal, here):
    source = '{"nodes": {"node-ann": {"actor": {"llm": {"model": "m", "prompt": "do\\nit"}}}}}'
    insert = "INSERT INTO plans (id, source, digest, state, created) VALUES ('p-1', ?, '', '', 0)"
    here.store.write(lambda tx: tx.execute(insert, (source,)))
    out = terminal.run("blame", f"{FILE}:3").out
    assert "  prompt     do it\n  model      m\n" in out


def test_records_hold_all_of_it(terminal, here):
    records = terminal.run("blame", FILE, "--json").records
    assert records[0] == {"kind": "line", "line": 1, "text": "line 1", "by": "you"}
    assert {name: records[2][name] for name in ("by", "plan", "node", "actor", "changeset")} == {
        "by": "plan",
        "plan": "p-1",
        "node": "node-ann",
        "actor": "ann",
        "changeset": here.changeset,
    }
    assert (records[2]["apply"], records[2]["told"]) == (here.applied.id, {})
    with DurableCostTracker(here.store) as tracker:
        tracker.record_usage("0.5", Scopes(plan=PLAN, actor="ann"))
    assert terminal.run("blame", f"{FILE}:3", "--json").records[0]["cost_usd"] == "0.50"


def test_file_whose_name_looks_like_a_line_is_a_file(terminal, here):
    here.write("app.txt:3", "mine\n")
    assert terminal.run("blame", f"{FILE}:3").out.splitlines()[1].split() == [
        "1", "-", "you", "-", "-", "mine",
    ]  # fmt: skip


def test_empty_file_answers_nothing(terminal, here):
    here.write("empty", "")
    answer = terminal.run("blame", "../../empty")
    assert (answer.code, answer.out) == (0, "")


@pytest.mark.parametrize(
    ("name", "why"),
    [("../../nowhere", "is not there"), (f"{FILE}:99", "has the lines 1 to 20, got 99")],
    ids=["file", "line"],
)
@pytest.mark.usefixtures("here")
def test_what_is_not_there_is_asked_wrongly(terminal, name, why):
    answer = terminal.run("blame", name)
    assert (answer.code, answer.out) == (2, "")
    assert "error[CA1005]" in answer.err
    assert why in answer.err


def test_no_plan_wrote_nothing_and_leaves_no_trace(terminal):
    answer = terminal.run("blame", "anything")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("No plan has written anything yet\n")
    assert not terminal.path.parent.exists()
