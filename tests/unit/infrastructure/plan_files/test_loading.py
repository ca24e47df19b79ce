from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan import Capture, CommandActor, Node, Plan
from cleveragents.infrastructure.plan_files import load_plan, parse_plan

GOOD = """\
goal: Tidy
nodes:
  a:
    actor: {command: ruff check}
    outputs: lines
"""


def refused(text):
    with pytest.raises(RequestError) as caught:
        parse_plan(text, "p.yaml")
    assert caught.value.code == "CA1101"
    return caught.value


def test_plan_file_becomes_the_plan_that_python_would_make(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(GOOD, encoding="utf-8")
    loaded = load_plan(path)
    actor = CommandActor(("ruff", "check"))
    assert loaded.plan == Plan(
        goal="Tidy", nodes=(Node(name="a", actor=actor, outputs=Capture.LINES),)
    )
    assert loaded.text == GOOD
    assert loaded.digest == hashlib.sha256(GOOD.encode()).hexdigest()
    assert load_plan(str(path)) == loaded


def test_mistakes_are_told_together_sorted_by_line():
    error = refused("""\
goal: x
at_once: 300
apply: maybe
nodes:
  lint:
    actor: {comand: ls}
    needs: [tets, b]
    timout_s: 5
    timeout_s: 5
    timeout_s: 6
  b:
    needs: [lint]
    actor: {command: [echo, "${nodes.c.output}"]}
  test: {actor: {command: ls}, when: "nodes.b.output =="}
  Bad: {actor: {command: ls}}
""")
    assert list(error.facts) == [
        "p.yaml:2:10",
        "p.yaml:3:8",
        "p.yaml:6:12",
        "p.yaml:7:12",
        "p.yaml:7:13",
        "p.yaml:8:5",
        "p.yaml:10:5",
        "p.yaml:13:29",
        "p.yaml:14:38",
        "p.yaml:15:3",
    ]
    assert error.message == (
        "Plan file `p.yaml` breaks 10 rules:"
        " `at_once` must be a whole number of nodes from 1 up to 256, got 300"
    )
    told = error.facts
    assert told["p.yaml:3:8"] == "`apply` must be one of `ask`, `auto`, `never`, got 'maybe'"
    assert told["p.yaml:6:12"].endswith("got `comand`; did you mean `command`?")
    assert told["p.yaml:7:12"] == "Nodes need each other in a loop: lint → b → lint"
    assert told["p.yaml:7:13"].endswith("did you mean `test`?")
    assert told["p.yaml:8:5"] == "`timout_s` is not known here; did you mean `timeout_s`?"
    assert told["p.yaml:10:5"] == "The key `timeout_s` stands twice, first in line 9"
    assert "no node of this plan" in told["p.yaml:13:29"]


def test_words_of_yaml_1_1_are_text():
    """In YAML 1.1 `no` is false, so that a country or a switch changes without a word."""
    error = refused("goal: x\nnodes:\n  on: {actor: {command: ls}, network: no}\n")
    assert error.facts == {"p.yaml:3:39": "`network` must be `true` or `false`, got 'no'"}
    plan = parse_plan("goal: off\nnodes:\n  no: {actor: {command: [yes, 'on']}, network: false}\n")
    assert (plan.goal, plan.nodes[0].name) == ("off", "no")
    assert plan.nodes[0].actor.command == ("yes", "on")


def test_nodes_of_a_list_are_found_by_their_place():
    error = refused("""\
goal: x
nodes:
- {name: a, actor: {command: ls}, needs: [b]}
- {name: a, actor: {command: ls}}
- {actor: {command: ls}}
- 7
""")
    assert list(error.facts) == ["p.yaml:3:43", "p.yaml:4:10", "p.yaml:5:3", "p.yaml:6:3"]


def test_what_is_missing_is_told_where_it_should_be():
    assert list(refused("goal: x").facts) == ["p.yaml:1:1"]
    error = refused("goal: x\nnodes:\n  a:\n  b: {}\n")
    assert list(error.facts) == ["p.yaml:3:5", "p.yaml:4:3"]
    assert "got nothing" in error.facts["p.yaml:3:5"]


def test_mistake_in_a_short_form_is_told_at_the_value():
    text = "goal: x\nnodes:\n  a: {actor: {command: ls}, check: [''], for_each: 5}\n"
    assert list(refused(text).facts) == ["p.yaml:3:36", "p.yaml:3:52"]


def test_mistake_in_an_alias_is_told_where_it_is_used():
    error = refused("""\
goal: x
nodes:
  a: {actor: &x {command: ls}, env: &e {A: b}}
  b: {actor: *x, context: *e}
""")
    assert list(error.facts) == ["p.yaml:4:27"]


def test_empty_file_says_what_a_plan_is():
    assert "must be a mapping with `name`, `goal`" in refused("").message
    assert "must be a mapping" in refused("- a").message


def test_hundreds_of_mistakes_end_the_reading():
    nodes = "".join(f"  n{number}: {{timeout_s: 0}}\n" for number in range(500))
    error = refused(f"goal: x\nnodes:\n{nodes}")
    assert "breaks 100 rules" in error.message
    assert error.facts["more"] == "80 further mistakes"


def test_file_that_cannot_be_read_is_refused(tmp_path):
    for path, why in [
        (tmp_path / "none.yaml", "No such file"),
        (tmp_path, "directory"),
        ("a\0b", "null"),
    ]:
        with pytest.raises(RequestError, match="cannot be read") as caught:
            load_plan(path)
        assert why in caught.value.message


def test_file_that_is_not_utf_8_is_refused_with_the_place(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_bytes("goal: ä\nname: ö\xff".encode("latin-1"))
    with pytest.raises(RequestError, match="must be UTF-8, got byte 0xe4") as caught:
        load_plan(path)
    assert list(caught.value.facts) == [f"{path}:1:7"]
    path.write_bytes("goal: ä\n x".encode() + b"\xff")
    with pytest.raises(RequestError, match="0xff") as caught:
        load_plan(path)
    assert list(caught.value.facts) == [f"{path}:2:3"]


def test_byte_order_mark_is_no_part_of_a_plan(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_plan(path).text == GOOD


def test_file_of_more_than_two_megabytes_is_refused(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_bytes(b"#" * 2_000_001)
    with pytest.raises(RequestError, match="at most 2,000,000 bytes"):
        load_plan(path)
    assert "at most 2,000,000 characters" in refused("#" * 2_000_001).message


@pytest.mark.skipif(sys.platform != "linux", reason="other systems take no such name")
def test_file_name_may_be_any_bytes(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yaml")
    Path(path).write_text(GOOD, encoding="utf-8")
    assert load_plan(path).plan.goal == "Tidy"
