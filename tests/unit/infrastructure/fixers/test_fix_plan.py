from __future__ import annotations

import json

import pytest

from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.domain.plan import PLAN, ApplyMode, CommandActor, OnFailure, PythonActor
from cleveragents.domain.plan_rules import Findings
from cleveragents.infrastructure.fixers import FileChoice, Fixer, fix_plan
from cleveragents.infrastructure.fixers.fix_plan import chosen_fixers

BLACK = Fixer("black", ("black", "."), "pyproject.toml [tool.black]")
CLIPPY = Fixer("clippy", ("cargo", "clippy"), "Cargo.toml", on_request=True)
ABSENT = Fixer("prettier", ("prettier",), "package.json", "`prettier` is not installed")
SPACES = Fixer(
    "spaces", ("trailing-whitespace-fixer",), "hook", files=FileChoice(wanted="^${x}"), codes=(0, 1)
)


def test_each_fixer_is_a_node_that_waits_for_nobody():
    plan = fix_plan((BLACK, SPACES, ABSENT, CLIPPY))
    assert [(node.name, node.needs) for node in plan.nodes] == [("black", ()), ("spaces", ())]
    assert (plan.on_failure, plan.apply) == (OnFailure.CONTINUE, ApplyMode.NEVER)


def test_a_fixer_that_says_all_by_itself_is_a_plain_command():
    (node,) = fix_plan((BLACK,)).nodes
    assert node.actor == CommandActor(("black", "."))


def test_a_fixer_that_needs_names_of_files_is_run_by_a_function():
    (node,) = fix_plan((SPACES,)).nodes
    assert isinstance(node.actor, PythonActor)
    assert node.inputs["codes"] == (0, 1)
    # A dollar of the repository is no template of the plan.
    assert node.inputs["files"]["wanted"] == "^$${x}"


def test_every_node_has_the_check():
    plan = fix_plan((BLACK, SPACES), check=("pytest", "-k", "${x}"))
    assert {node.check.command for node in plan.resolved().values()} == {("pytest", "-k", "$${x}")}
    assert fix_plan((BLACK,)).defaults.check is None


def test_a_failed_fixer_is_given_up_and_one_in_conflict_is_run_again():
    (node,) = fix_plan((BLACK,)).nodes
    assert node.recovery.cures[ErrorCategory.CHECK_FAILED] == (Action.ABORT,)
    assert node.recovery.cures[ErrorCategory.CONFLICT] == (Action.RETRY, Action.ABORT)


def test_the_plan_survives_the_journal():
    plan = fix_plan((BLACK, SPACES), check=("pytest",))
    text = json.dumps(PLAN.plain(plan))
    found = Findings()
    assert PLAN.read(json.loads(text), (), found) == plan
    assert not found.mistakes


def test_only_what_is_asked_for_runs():
    fixers = (BLACK, SPACES, CLIPPY, ABSENT)
    assert chosen_fixers(fixers, ["clippy"]) == (CLIPPY,)
    assert chosen_fixers(fixers, ["spaces", "black"]) == (BLACK, SPACES)


def test_a_name_that_was_not_found_is_refused_with_those_that_were():
    with pytest.raises(RequestError, match="found: black, got 'blak'"):
        fix_plan((BLACK,), only=["blak"])
    with pytest.raises(RequestError, match="found: none, got 'x'"):
        fix_plan((), only=["x"])


def test_a_fixer_that_is_asked_for_and_cannot_run_is_refused_with_the_reason():
    with pytest.raises(SetupError, match="`prettier` is not installed") as caught:
        fix_plan((ABSENT,), only=["prettier"])
    assert caught.value.code == "CA1006"
