from __future__ import annotations

import pytest

from cleveragents.domain.errors import RequestError
from cleveragents.infrastructure.stored_text import check_names, check_plan_id, plain


@pytest.mark.parametrize("text", ["", "café", "\0", "\U0001f600"])
def test_what_utf_8_can_hold_stays_as_it_is(text):
    assert plain(text) == text


def test_a_lone_surrogate_is_spelled_out():
    assert plain("caf\udce9") == "caf\\udce9"


def test_a_name_that_would_become_another_is_refused():
    check_names(plan_id="café", actor=None)
    with pytest.raises(RequestError, match="`actor` must be a text that UTF-8 can hold"):
        check_names(plan_id="p", actor="caf\udce9")


@pytest.mark.parametrize("plan", ["", " ", "-x", "--all", "caf\udce9"])
def test_a_plan_that_no_command_could_be_given_is_refused(plan):
    check_plan_id("p-1")
    with pytest.raises(RequestError, match="must be a text that"):
        check_plan_id(plan)
