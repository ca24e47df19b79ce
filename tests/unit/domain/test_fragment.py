from __future__ import annotations

import math
from dataclasses import replace

import pytest

from cleveragents.domain.errors import RequestError
from cleveragents.domain.fragment import Fragment, is_relative, version_of

GOOD = Fragment("src/app.py", 3, 4, "one\ntwo", 0.5, "words", "holds `one`")


def test_a_fragment_knows_its_lines():
    assert GOOD.lines == ["one", "two"]


def test_an_empty_line_is_a_line():
    assert replace(GOOD, end_line=3, text="").lines == [""]


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../b", "./a", "a//b", "a/", "a\\b", "a\nb", "a\0b", "\udc80", 7],
    ids=repr,
)
def test_a_path_that_is_not_inside_the_root_is_refused(path):
    assert not is_relative(path)
    with pytest.raises(RequestError, match="`path` must be a relative path"):
        replace(GOOD, path=path)


@pytest.mark.parametrize("path", ["a", "src/ä b.py", ".github/x..y", "..."], ids=repr)
def test_a_plain_relative_path_is_taken(path):
    assert replace(GOOD, path=path).path == path


@pytest.mark.parametrize(
    ("start", "end"), [(0, 1), (-1, 0), (2, 1), (True, 2), (1.0, 2), (1, "2")], ids=str
)
def test_lines_that_are_no_span_are_refused(start, end):
    with pytest.raises(RequestError, match="Lines must be whole numbers from 1"):
        replace(GOOD, start_line=start, end_line=end)


@pytest.mark.parametrize("text", ["one", "one\ntwo\n"], ids=["too-few", "newline-at-the-end"])
def test_text_must_have_the_lines_that_it_claims(text):
    with pytest.raises(RequestError, match="one line for each of its 2 line numbers"):
        replace(GOOD, text=text)


@pytest.mark.parametrize(
    "text", [None, b"one\ntwo", "\udc80\n"], ids=["none", "bytes", "surrogate"]
)
def test_what_is_not_text_is_refused(text):
    with pytest.raises(RequestError, match="`text` must be"):
        replace(GOOD, text=text)


def test_text_beyond_ascii_is_taken():
    assert replace(GOOD, text="größe\n漢字").lines == ["größe", "漢字"]


@pytest.mark.parametrize(
    "score", [math.nan, math.inf, -math.inf, True, "1", None, 10**400], ids=lambda it: str(it)[:9]
)
def test_a_score_that_cannot_be_compared_is_refused(score):
    with pytest.raises(RequestError, match="`score` must be a finite number"):
        replace(GOOD, score=score)


@pytest.mark.parametrize("field", ["source", "reason"])
@pytest.mark.parametrize("value", ["", " ", None], ids=repr)
def test_a_fragment_without_source_or_reason_is_refused(field, value):
    with pytest.raises(RequestError, match=f"`{field}` must be text"):
        replace(GOOD, **{field: value})


def test_version_is_of_the_whole_text_and_is_text():
    assert version_of("a\nb") == version_of("a\nb") != version_of("a\nc")
    assert version_of("\udcff")
    with pytest.raises(RequestError, match="`version` must be text"):
        Fragment("a.py", 1, 1, "x", 1.0, "s", "r", 7)
