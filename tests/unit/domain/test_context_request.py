from __future__ import annotations

from pathlib import Path

import pytest

from cleveragents.domain.context_request import ContextRequest, Written
from cleveragents.domain.errors import RequestError


def test_a_request_needs_a_task_and_a_root_only():
    request = ContextRequest("Fix it", Path())

    assert (request.files, request.tokens_max) == ((), 8000)


@pytest.mark.parametrize("task", ["", " \n", None], ids=repr)
def test_a_task_that_says_nothing_is_refused(task):
    with pytest.raises(RequestError, match="`task` must be text"):
        ContextRequest(task, Path())


def test_a_root_that_is_no_path_is_refused():
    with pytest.raises(RequestError, match=r"`root` must be a `pathlib\.Path`, got str"):
        ContextRequest("Fix it", ".")


def test_files_must_be_a_tuple_because_text_is_a_sequence_too():
    with pytest.raises(RequestError, match="`files` must be a tuple of relative paths, got str"):
        ContextRequest("Fix it", Path(), files="app.py")


def test_files_must_stay_inside_the_root():
    with pytest.raises(RequestError, match="`files` must be a relative path"):
        ContextRequest("Fix it", Path(), files=("app.py", "../secret"))


@pytest.mark.parametrize("tokens", [0, -1, 1.5, True, 10**9], ids=str)
def test_a_budget_that_is_no_number_of_tokens_is_refused(tokens):
    with pytest.raises(RequestError, match="`tokens_max` must be a whole number of tokens"):
        ContextRequest("Fix it", Path(), tokens_max=tokens)


def test_overlay_must_tell_what_changed():
    written = Written({"app.py": b"x", "gone.py": None})
    assert ContextRequest("Fix it", Path(), overlay=written).overlay.changed()["app.py"] == b"x"
    with pytest.raises(RequestError, match="`overlay` must have a method `changed`, got dict"):
        ContextRequest("Fix it", Path(), overlay={})
