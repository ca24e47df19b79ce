from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cleveragents.infrastructure.plan_files import yaml_source
from cleveragents.infrastructure.plan_files.yaml_source import NotReadable, read_yaml


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("~", None),
        ("null", None),
        ("", None),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("on", "on"),
        ("n", "n"),
        ("12", 12),
        ("-3", -3),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-.inf", float("-inf")),
        ("=", "="),
        ("'12'", "12"),
        ('"true"', "true"),
        ("|\n  no\n", "no\n"),
        ("9" * 500, "9" * 500),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(word, value):
    data = read_yaml(f"x: {word}").data
    assert data == {"x": value}
    assert type(data["x"]) is type(value)


def test_not_a_number_is_one_word_of_the_core_schema():
    assert str(read_yaml("x: .nan").data["x"]) == "nan"


def test_keys_are_always_text():
    assert read_yaml("{1: a, true: b, null: c, 1.0: d}").data == {
        "1": "a",
        "true": "b",
        "null": "c",
        "1.0": "d",
    }


def test_every_key_and_value_has_its_place():
    source = read_yaml("a:\n  - b: 1\n    c: {d: 2}\n")
    assert source.keys["a", 0, "c", "d"] == (3, 9)
    assert source.values["a", 0, "c", "d"] == (3, 12)
    assert source.spot(("a", 0, "c", "none"), on_key=False) == (3, 8)
    assert source.spot(("a",), on_key=True) == (1, 1)
    assert source.spot(("gone",), on_key=True) == (1, 1)


@pytest.mark.parametrize(
    ("text", "spot", "says"),
    [
        ("a:\n\tb: 1", (2, 1), "got a tab"),
        ("a:\tb", (1, 3), "got a tab"),
        ("a: [1", (1, 6), "This is not YAML"),
        ("a: 1\n b: 2", (2, 3), "This is not YAML"),
        ("a: 1\n---\nb: 2", (2, 1), "one document"),
        ("a: *x", (1, 4), "must come after its anchor"),
        ("a: &x [*x]", (1, 8), "must come after its anchor"),
        ("a: !!python/name:os.system x", (1, 4), "Tags are not read"),
        ("!x {a: 1}", (1, 1), "Tags are not read"),
        ("!x a: 1", (1, 1), "Tags are not read"),
        ("a: ! b", (1, 4), "Tags are not read"),
        ("? [a]\n: b", (1, 3), "A key must be a word"),
        ("&k a: 1\n*k : 2", (2, 1), "A key must be a word"),
        ("a: &x {b: 1}\nc:\n  <<: *x", (3, 3), "Merge keys"),
        ("[" * 50, (1, 33), "nested 32 deep"),
        ("a: b\x07", (1, 5), "U+0007"),
        ("a\nb: \udc80", (2, 4), "U+DC80"),
        ("%YAML 3.0\n---\na: 1", (1, 1), "This is not YAML"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_with_its_place(text, spot, says):
    with pytest.raises(NotReadable) as caught:
        read_yaml(text)
    assert says in caught.value.says
    assert caught.value.spot == spot


def test_key_that_stands_twice_is_told_and_the_first_is_kept():
    source = read_yaml("a: {x: 1}\na: {x: 2, x: 3}\n")
    assert source.data == {"a": {"x": 1}}
    assert source.values["a", "x"] == (1, 8)
    assert [spot for spot, _ in source.twice] == [(2, 1), (2, 11)]


def test_aliases_may_save_typing():
    assert read_yaml("a: &x [1]\nb: *x\nc: &x 2\nd: *x").data == {
        "a": [1],
        "b": [1],
        "c": 2,
        "d": 2,
    }


def test_bomb_of_aliases_is_refused():
    """Nine lines that would be a billion values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for number in range(1, 9):
        inside = ", ".join([f"*a{number - 1}"] * 10)
        lines.append(f"a{number}: &a{number} [{inside}]")
    with pytest.raises(NotReadable, match="at most 500,000 values"):
        read_yaml("\n".join(lines))


def test_many_values_are_refused_as_they_come(monkeypatch):
    monkeypatch.setattr(yaml_source, "VALUES_MAX", 5)
    with pytest.raises(NotReadable) as caught:
        read_yaml("[1, 2, 3, 4, 5, [")
    assert caught.value.spot == (1, 14)


@given(st.text(alphabet="ab:- \n\t[]{}&*!|>'\"%#?,~0\\", max_size=40))
@example("&a")
@example("? ")
@example("- - - :")
@example("\\")
def test_any_text_is_read_or_refused(text):
    try:
        spot = read_yaml(text).values[()]
    except NotReadable as error:
        spot = error.spot
    assert min(spot) >= 1
