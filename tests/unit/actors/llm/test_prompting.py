"""What a model is told at the beginning."""

from __future__ import annotations

import pytest

from cleveragents.actors.llm.prompting import (
    OWN_PROMPTS,
    Prompts,
    feedback_text,
    rendered_context,
    shape_text,
    system_text,
    without_version,
)
from cleveragents.domain.errors import SetupError
from cleveragents.domain.plan import LlmActor
from cleveragents.domain.plan_options import Capture

VALUE = LlmActor("test:m", "Do it", system="Speak Latin")


def test_prompts_of_the_package_have_a_version_that_models_do_not_see():
    for name in ("system", "tools"):
        assert Prompts().text(name)
        assert "version" not in Prompts().text(name)


def test_tree_may_have_its_own_prompts(tmp_path):
    own = tmp_path / OWN_PROMPTS
    own.mkdir(parents=True)
    (own / "system.md").write_text("<!-- version 7 -->\nBe brief.\n")
    text = system_text(Prompts(tmp_path), VALUE)
    assert text.startswith("Be brief.\n\n")
    assert text.endswith("\n\nSpeak Latin")
    assert Prompts(tmp_path).text("tools") == Prompts().text("tools")


def test_prompt_that_cannot_be_read_is_refused(tmp_path):
    own = tmp_path / OWN_PROMPTS
    own.mkdir(parents=True)
    (own / "system.md").write_bytes(b"\xff")
    with pytest.raises(SetupError, match="cannot be read"):
        Prompts(tmp_path).text("system")


def test_text_without_a_version_is_taken_whole():
    assert without_version("One\nTwo\n") == "One\nTwo"


def test_form_of_the_answer_is_told():
    assert shape_text(Capture.TEXT) == ""
    assert "JSON value" in shape_text(Capture.JSON)
    assert "one item on each line" in shape_text(Capture.LINES)
    assert "`a`, `b`" in shape_text(("a", "b"))


def test_nothing_happened_is_not_told():
    assert feedback_text(()) == ""
    assert feedback_text(("red", "green")).endswith("- red\n- green")


def test_context_is_rendered_by_whoever_found_it():
    class Found:
        def render(self):
            return " text \n"

    assert rendered_context(Found()) == "text"
    assert rendered_context("plain") == "plain"
