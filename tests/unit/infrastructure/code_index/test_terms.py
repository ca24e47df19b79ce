from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.infrastructure.code_index.terms import terms_of, terms_of_word


@pytest.mark.parametrize(
    ("word", "terms"),
    [
        ("HTTPServer_error", ("httpserver_error", "http", "server", "error")),
        ("__init__", ("init",)),
        ("x", ()),
        ("a" * 65, ()),
    ],
    ids=["parts", "dunder", "letter", "data"],
)
def test_word_gives_its_whole_and_its_parts(word, terms):
    assert terms_of_word(word) == terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("parsers", "parser"),
        ("parsing", "parse"),
        ("parsed", "parse"),
        ("caches", "cache"),
        ("entries", "entry"),
        ("stopped", "stop"),
        ("calling", "call"),
        ("adding", "add"),
    ],
)
def test_forms_of_a_word_meet(one, other):
    assert terms_of_word(one) == terms_of_word(other)


@pytest.mark.parametrize("word", ["string", "class", "status", "this", "need", "bring", "used"])
def test_words_that_only_look_like_forms_stay(word):
    assert terms_of_word(word) == (word,)


def test_terms_are_counted_over_words():
    assert terms_of("log_level, log_level; logs") == {"log_level": 2, "log": 3, "level": 2}


@given(st.text())
def test_every_text_has_terms_in_lower_case_or_none(text):
    assert all(term and count > 0 for term, count in terms_of(text).items())
