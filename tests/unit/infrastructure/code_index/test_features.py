from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cleveragents.infrastructure.code_index import features
from cleveragents.infrastructure.code_index.features import features_of, numbered, term_number
from cleveragents.infrastructure.code_index.terms import terms_of


@given(st.text() | st.text(st.characters(max_codepoint=127)))
def test_numbers_stand_for_exactly_the_terms_of_the_text(text):
    """ASCII is split in another way than the rest, for speed alone."""
    expected: dict[int, int] = {}
    for term, count in terms_of(text).items():
        number = term_number(term)
        expected[number] = expected.get(number, 0) + count
    assert numbered(text) == expected


def test_words_that_were_met_are_forgotten_before_they_are_too_many(monkeypatch):
    monkeypatch.setattr(features, "_WORDS_KEPT", 2)
    monkeypatch.setattr(features, "_NUMBERS", features._Numbers())
    assert len(numbered("alpha beta gamma delta omega")) == 5
    assert len(features._NUMBERS) <= 2


def test_count_that_is_too_large_for_its_byte_is_the_largest():
    terms = features_of("a.txt", "alpha " * 300 + "beta").terms
    assert sorted(terms.counts) == [1, 255]
