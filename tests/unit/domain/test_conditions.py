from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.conditions import Condition, Reference, Template, did_you_mean
from cleveragents.domain.errors import RequestError

SCOPE = {
    "nodes": {
        "scan": {"count": 4, "files": ["a.py", "b.py"], "meta": {"ok": True}},
        "split-auth": "done",
        "v1.2": [10, 20],
        "skipped": None,
    },
    "inputs": {"mode": "fast", "limit": 3, "flag": True, "none": None},
    "plan": {"goal": "Tidy"},
    "item": {"path": "x"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nodes.scan.output.count", 4),
        ("nodes.scan.output.files.1", "b.py"),
        ("nodes.split-auth.output", "done"),
        ("nodes.v1.2.output.0", 10),
        ("inputs.mode", "fast"),
        ("plan.goal", "Tidy"),
        ("item.path", "x"),
        ("item", {"path": "x"}),
        ("nodes.skipped.output.any.thing", None),
    ],
)
def test_reference_finds_its_value(text, value):
    assert Reference.parse(text).value(SCOPE) == value


@pytest.mark.parametrize(
    "text", ["", "nodes", "nodes.a", "nodes.output", "nodes.a.output..x", "a..b", "a.", "1a", "a b"]
)
def test_reference_that_is_no_dotted_name_is_refused(text):
    with pytest.raises(RequestError, match="A reference") as caught:
        Reference.parse(text)
    assert caught.value.code == "CA1101"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nodes.scan.output.cuont", "there is no `cuont`; did you mean `count`?"),
        ("nodes.scan.output.files.2", "a list of 2 has no `2`"),
        ("nodes.scan.output.files.x", "a list of 2 has no `x`"),
        ("nodes.split-auth.output.x", "text has no `x`"),
        ("nodes.scan.output.count.x", "a number has no `x`"),
        ("inputs.flag.x", "true has no `x`"),
        ("nodes.other.output", "`other` has none"),
        ("thing", "`thing` has none"),
    ],
)
def test_value_that_is_not_there_is_refused_with_what_is(text, why):
    with pytest.raises(RequestError, match="has no value") as caught:
        Reference.parse(text).value(SCOPE)
    assert why in caught.value.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${nodes.scan.output.count}", 4),
        ("n=${nodes.scan.output.count}!", "n=4!"),
        ("${inputs.mode}${inputs.mode}", "fastfast"),
        ("$${inputs.mode}", "${inputs.mode}"),
        ("$$${inputs.mode}", "$${inputs.mode}"),
        ("a$${b ${inputs.mode}", "a${b fast"),
        ("$5 and $", "$5 and $"),
        ("list: ${nodes.scan.output.files}", 'list: ["a.py", "b.py"]'),
        ("is ${inputs.flag} ${inputs.none}", "is true null"),
    ],
)
def test_template_is_filled_in(text, value):
    assert Template.parse(text).render(SCOPE) == value


@pytest.mark.parametrize("text", ["${", "a ${b", "${a{b}}", "${}", "${a b}"])
def test_template_that_cannot_be_read_is_refused(text):
    with pytest.raises(RequestError, match="must be"):
        Template.parse(text)


@given(st.text(alphabet="${}a.b \\"))
def test_template_is_refused_or_keeps_its_text(text):
    try:
        template = Template.parse(text)
    except RequestError:
        return
    scope = {one.root: "X" for one in template.references if not one.keys}
    if all(not one.keys for one in template.references):
        assert isinstance(template.render(scope), str)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("true", True),
        ("not false", True),
        ("null", False),
        ("0", False),
        ('""', False),
        ("[]", False),
        ("1 < 2", True),
        ("1 < 2 < 2", False),
        ("1 <= 1 and 2 >= 2 and 3 > 2", True),
        ("-1 < 0", True),
        ("1.5e1 == 15", True),
        ("true == 1", False),
        ("true == true", True),
        ("null == false", False),
        ('"a" < "b"', True),
        ("\"a\" == 'a'", True),
        (r'"a\"b\\" != "\n\t"', True),
        ("1 in [1, 2]", True),
        ("true in [1, 2]", False),
        ("3 not in [1, 2]", True),
        ('"fa" in inputs.mode', True),
        ('"count" in nodes.scan.output', True),
        ("nodes.scan.output.count > inputs.limit", True),
        ('nodes.split-auth.output == "done"', True),
        ('nodes.scan.output.files == ["a.py", "b.py"]', True),
        ('nodes.scan.output.files == ["a.py"]', False),
        ("nodes.scan.output.meta == nodes.scan.output.meta", True),
        ("nodes.scan.output.meta == nodes.scan.output", False),
        ("nodes.skipped.output == null", True),
        ("inputs.flag or inputs.unknown", True),
        ("not inputs.flag and inputs.unknown", False),
        ("(inputs.limit == 3 or false) and not (1 == 2)", True),
        ("inputs.limit\n == 3\n", True),
    ],
)
def test_condition_answers(text, holds):
    assert Condition(text).holds(SCOPE) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "1 +",
        "1 + 2",
        "a = 1",
        "f(x)",
        "inputs.x[0]",
        "(1, 2)",
        "-inputs.x",
        "lambda: 1",
        "a if b else c",
        "x is null",
        "1 == ",
        "a b",
        'f"{x}"',
        'b"x"',
        "__import__('os').system('ls')",
        "x := 1",
        "1_000",
        "1e999",
        "1j",
        "...",
        "{1: 2}",
        r'"\d"',
        "'unclosed",
        "a.b.",
        "'\udc80' == 1",
        "#",
        "(" * 400 + ")" * 400,
        "9" * 5000,
        "x == 1 " * 200,
        7,
    ],
)
def test_condition_outside_of_the_white_list_is_refused(text):
    with pytest.raises(RequestError) as caught:
        Condition(text)
    assert caught.value.code == "CA1101"


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("inputs.x(1)", "a call"),
        ("inputs.x [0]", "brackets after a name"),
        ("(1, 2) == 3", "a tuple"),
        ("1 - 2", "arithmetic"),
        ("- inputs.x", "a minus"),
        ("[1] in [*a]", "'*a]'"),
    ],
)
def test_refusal_names_what_is_not_known(text, got):
    with pytest.raises(RequestError) as caught:
        Condition(text)
    assert got in caught.value.message


@pytest.mark.parametrize(
    "text", ['1 < "a"', "null > 1", "true < 2", "[1] < [2]", "1 in 2", '1 in "a"', "1 in null"]
)
def test_values_that_cannot_be_compared_are_refused(text):
    with pytest.raises(RequestError, match="got"):
        Condition(text).holds(SCOPE)


def test_condition_tells_what_it_needs():
    condition = Condition("nodes.a-b.output.n > 1 and inputs.x == 'nodes.c.output'")
    assert [one.text for one in condition.references] == ["nodes.a-b.output.n", "inputs.x"]
    assert condition.references[0].node == "a-b"


def test_condition_is_a_value():
    condition = Condition("inputs.x == 1")
    assert condition == Condition("inputs.x == 1")
    assert hash(condition) == hash(Condition("inputs.x == 1"))
    assert pickle.loads(pickle.dumps(condition)).holds({"inputs": {"x": 1}})


@given(st.text(max_size=60))
def test_no_text_does_anything_but_be_refused_or_answer(text):
    try:
        answer = Condition(text).holds({})
    except RequestError:
        return
    assert isinstance(answer, bool)


def test_close_words_are_suggested():
    assert did_you_mean("tets", ["test", "lint"]) == "; did you mean `test`?"
    assert did_you_mean("zzz", ["test"]) == ""
