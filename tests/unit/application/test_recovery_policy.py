"""The decision table: what is tried, how often, and when to stop trying."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.application.services.recovery_policy import (
    LADDERS,
    RecoveryPolicy,
    Remedies,
    decide,
)
from cleveragents.domain.error_record import (
    Action,
    ErrorCategory,
    ErrorRecord,
    SideEffects,
    Standing,
)
from cleveragents.domain.errors import RequestError, SetupError

POLICY = RecoveryPolicy()
ALL = Remedies(other_model=True, shrink=True, replan=True, person=True)
NOTHING = Remedies()
INCURABLE = (
    ErrorCategory.QUOTA,
    ErrorCategory.BAD_REQUEST,
    ErrorCategory.CONTEXT_OVERFLOW,
    ErrorCategory.AUTH,
    ErrorCategory.TOOL_DENIED,
    ErrorCategory.BUDGET,
    ErrorCategory.CANCELLED,
    ErrorCategory.BUG,
    ErrorCategory.STRATEGY,
)


def fault(category: ErrorCategory, **facts: object) -> ErrorRecord:
    return ErrorRecord(plan_id="p", node="n", fingerprint="f", category=category, **facts)


def after(standing: Standing, decision: object) -> Standing:
    """What a history would know after this decision."""
    action = decision.action
    return replace(
        standing,
        times=standing.times + 1,
        rung=max(standing.rung, action.rung),
        tries={**standing.tries, action: standing.tries.get(action, 0) + 1},
        waited_s=standing.waited_s + decision.delay_s,
        replans=standing.replans + (action is Action.REPLAN),
    )


def walk(record: ErrorRecord, remedies: Remedies, *, steps: int = 40, chance: float = 0.5) -> list:
    """Meet the same fault again and again, as a loop around a call would."""
    standing, actions = Standing(), []
    for _ in range(steps):
        decision = decide(record, standing, POLICY, chance=chance, remedies=remedies)
        actions.append(decision.action)
        if decision.action in {Action.ABORT, Action.ASK, Action.SKIP}:
            break
        standing = after(standing, decision)
    return actions


@pytest.mark.parametrize("remedies", [ALL, NOTHING], ids=["all at hand", "nothing at hand"])
@pytest.mark.parametrize("category", INCURABLE)
def test_no_retry_is_wasted_on_a_fault_that_no_retry_cures(category, remedies):
    assert walk(fault(category), remedies).count(Action.RETRY) == 0


@pytest.mark.parametrize(
    "category", [ErrorCategory.QUOTA, ErrorCategory.AUTH, ErrorCategory.BUDGET]
)
def test_a_time_named_by_the_provider_does_not_make_an_incurable_fault_curable(category):
    assert Action.RETRY not in walk(fault(category, retry_after_s=1.0), ALL)


R, F, S, M, P, ASK, ABORT = (
    Action.RETRY,
    Action.FEEDBACK,
    Action.SHRINK,
    Action.FALL_BACK,
    Action.REPLAN,
    Action.ASK,
    Action.ABORT,
)
WALKS = {
    ErrorCategory.QUOTA: [M] * 3 + [ASK],
    ErrorCategory.OVERLOADED: [R] * 2 + [M] * 3 + [ASK],
    ErrorCategory.CONNECT: [R] * 3 + [M] * 3 + [ASK],
    ErrorCategory.READ_TIMEOUT: [R] + [M] * 3 + [P] * 5 + [ASK],
    ErrorCategory.CONTEXT_OVERFLOW: [S] + [M] * 3 + [P] * 5 + [ASK],
    ErrorCategory.BAD_REQUEST: [P] * 5 + [ASK],
    ErrorCategory.CONTENT_FILTER: [F] + [M] * 3 + [ASK],
    ErrorCategory.AUTH: [M] * 3 + [ASK],
    ErrorCategory.BAD_OUTPUT: [F] * 2 + [M] * 3 + [P] * 5 + [ASK],
    ErrorCategory.LOOP: [F] + [M] * 3 + [P] * 5 + [ASK],
    ErrorCategory.TOOL_ARGS: [F] * 2 + [P] * 5 + [ASK],
    ErrorCategory.TOOL_TRANSIENT: [R] * 3 + [F] * 2 + [P] * 5 + [ASK],
    ErrorCategory.TOOL_TIMEOUT: [R] + [F] * 2 + [P] * 5 + [ASK],
    ErrorCategory.TOOL_DENIED: [P] * 5 + [ASK],
    ErrorCategory.TOOL_CRASH: [R] + [P] * 5 + [ASK],
    ErrorCategory.STRATEGY: [Action.SKIP],
    ErrorCategory.CHECK_FAILED: [F] * 2 + [P] * 5 + [ASK],
    ErrorCategory.CONFLICT: [R] * 3 + [P] * 5 + [ASK],
    ErrorCategory.BUDGET: [ASK],
    ErrorCategory.STALLED: [R] + [P] * 5 + [ASK],
    ErrorCategory.QUESTION: [ASK],
    ErrorCategory.CANCELLED: [ABORT],
    ErrorCategory.BUG: [ABORT],
    ErrorCategory.UNKNOWN: [R, ASK],
    ErrorCategory.RATE_LIMIT: [R] * 20 + [M] * 3 + [ASK],
}


@pytest.mark.parametrize("category", ErrorCategory)
def test_the_ladder_of_each_fault_is_climbed_to_its_end(category):
    assert walk(fault(category, idempotent=True), ALL) == WALKS[category]


@pytest.mark.parametrize("category", ErrorCategory)
def test_without_any_remedy_every_fault_ends(category):
    last = walk(fault(category, idempotent=True), NOTHING)[-1]
    assert last is (Action.SKIP if category is ErrorCategory.STRATEGY else ABORT)


@given(
    st.sampled_from(ErrorCategory),
    st.integers(0, 6),
    st.booleans(),
    st.floats(0, 1, exclude_max=True),
)
def test_the_ladder_never_goes_down(category, rung, person, chance):
    decision = decide(
        fault(category, idempotent=True),
        Standing(rung=rung),
        POLICY,
        chance=chance,
        remedies=replace(ALL, person=person),
    )
    assert decision.action.rung >= rung or category is ErrorCategory.STRATEGY


@pytest.mark.parametrize("hand", tuple(product([True, False], repeat=4)))
@pytest.mark.parametrize("category", ErrorCategory)
def test_only_what_is_at_hand_is_decided(category, hand):
    remedies = Remedies(
        other_model=hand[0], shrink=hand[1], replan=hand[2], person=hand[3], no_retry="no"
    )
    possible = {Action.FEEDBACK, Action.SKIP, Action.ABORT} | {
        action for action, there in zip((M, S, P, ASK), hand, strict=True) if there
    }
    assert (
        decide(fault(category), Standing(), POLICY, chance=0, remedies=remedies).action in possible
    )


class TestSafety:
    def retried(self, category, **facts):
        return decide(fault(category, **facts), Standing(), POLICY, chance=0).action is R

    def test_a_call_that_may_be_billed_is_repeated_only_if_no_tool_ran(self):
        assert self.retried(ErrorCategory.READ_TIMEOUT)
        for effects in (SideEffects.PARTIAL, SideEffects.UNKNOWN):
            assert not self.retried(
                ErrorCategory.READ_TIMEOUT, side_effects=effects, idempotent=True
            )

    def test_a_tool_is_repeated_only_if_that_is_harmless(self):
        unknown = SideEffects.UNKNOWN
        assert not self.retried(ErrorCategory.TOOL_TRANSIENT, idempotent=None)
        assert self.retried(ErrorCategory.TOOL_TRANSIENT, idempotent=True)
        assert not self.retried(ErrorCategory.TOOL_TIMEOUT, side_effects=unknown)
        assert self.retried(ErrorCategory.TOOL_TIMEOUT, side_effects=unknown, idempotent=True)
        assert self.retried(ErrorCategory.TOOL_CRASH, side_effects=unknown)
        assert not self.retried(ErrorCategory.TOOL_CRASH, idempotent=False)
        assert not self.retried(ErrorCategory.UNKNOWN, side_effects=unknown)


class TestDelays:
    def delay(self, category=ErrorCategory.OVERLOADED, *, chance=0.5, tries=0, **facts):
        standing = Standing(tries={R: tries})
        decision = decide(fault(category, **facts), standing, POLICY, chance=chance)
        assert decision.action is R
        return decision.delay_s

    def test_backoff_is_full_jitter_that_doubles(self):
        assert self.delay(chance=0.0) == 0.0
        assert [self.delay(tries=n) for n in (0, 1)] == [0.25, 0.5]

    def test_a_limit_without_a_time_waits_at_least_half(self):
        waits = [self.delay(ErrorCategory.RATE_LIMIT, chance=0.0, tries=n) for n in range(6)]
        assert waits == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0]

    @given(st.floats(0, 500), st.floats(0, 1, exclude_max=True))
    def test_a_limit_is_never_retried_before_the_named_time(self, named_s, chance):
        wait_s = self.delay(ErrorCategory.RATE_LIMIT, retry_after_s=named_s, chance=chance)
        assert named_s <= wait_s <= max(named_s, 0.5) + 1.0
        assert wait_s >= POLICY.backoff_s

    def test_an_overloaded_provider_that_names_a_time_is_obeyed(self):
        assert self.delay(retry_after_s=9.0) == 9.0

    def test_only_a_retry_waits(self):
        assert decide(fault(ErrorCategory.QUOTA), Standing(), POLICY, chance=0.9).delay_s == 0.0


class TestWaitingTooLong:
    def test_a_time_beyond_the_limit_moves_on_at_once(self):
        record = fault(ErrorCategory.RATE_LIMIT, retry_after_s=3600.0)
        decision = decide(record, Standing(), POLICY, chance=0, remedies=ALL)
        assert decision.action is M
        assert "the provider asks for 3600 s more" in decision.reason

    def test_waits_add_up(self):
        record = fault(ErrorCategory.RATE_LIMIT, retry_after_s=60.0)
        assert decide(record, Standing(waited_s=590), POLICY, chance=0, remedies=ALL).action is M
        assert decide(record, Standing(waited_s=500), POLICY, chance=0, remedies=ALL).action is R

    def test_backoff_of_ours_is_not_counted_as_the_providers_wish(self):
        record = fault(ErrorCategory.OVERLOADED)
        assert decide(record, Standing(waited_s=9999), POLICY, chance=0).action is R


def test_a_reason_says_what_was_passed_over_and_why():
    record = replace(fault(ErrorCategory.LOOP), underlying=ErrorCategory.TOOL_ARGS)
    decision = decide(record, Standing(tries={F: 1}, rung=2), POLICY, chance=0)
    assert decision.reason == (
        "tool.args in a loop: abort, because `retry_with_feedback` was used 1 of 1 times;"
        " no other model is left; the plan cannot be re-planned; no person can be reached"
    )
    cancelled = decide(fault(ErrorCategory.CANCELLED), Standing(), POLICY, chance=0)
    assert cancelled.reason == "cancelled: abort, because it was cancelled on purpose"
    assert decide(fault(ErrorCategory.OVERLOADED), Standing(), POLICY, chance=0).reason == (
        "llm.overloaded: retry"
    )


@pytest.mark.parametrize("chance", [-0.1, 1.0, float("nan")])
def test_chance_outside_its_range_is_refused(chance):
    with pytest.raises(RequestError, match="`chance` must be from 0 to below 1"):
        decide(fault(ErrorCategory.UNKNOWN), Standing(), POLICY, chance=chance)


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ({"backoff_s": 0}, "must be a number of seconds above 0"),
        ({"backoff_s": float("nan")}, "must be a number of seconds above 0"),
        ({"rate_limit_wait_s_max": -1}, "must be a number of seconds above 0"),
        ({"overloaded_retries_max": -1}, "must be a whole number from 0 to 100"),
        ({"feedbacks_max": 1.5}, "must be a whole number from 0 to 100"),
        ({"backoff_s": 9.0, "backoff_s_max": 1.0}, "must not be below `backoff_s`"),
        ({"loop_after": 1}, "must be at least 2"),
    ],
)
def test_a_policy_that_breaks_a_rule_is_refused_at_birth(setting, rule):
    with pytest.raises(SetupError, match=rule) as refused:
        RecoveryPolicy(**setting)
    assert refused.value.hint


def test_every_fault_has_a_ladder_that_rises():
    assert set(LADDERS) == set(ErrorCategory)
    for ladder in LADDERS.values():
        rungs = [action.rung for action in ladder]
        assert rungs == sorted(rungs)


def test_the_document_lists_every_fault_with_as_many_rungs():
    document = Path(__file__).parents[3] / "docs" / "recovery.md"
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in document.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    faults = [row for row in rows if " " not in row[0]]
    documented = {row[0].strip("`"): len(row[2].split("→")) for row in faults}
    assert documented == {str(c): max(1, len(ladder)) for c, ladder in LADDERS.items()}


def test_cures_of_a_node_stand_in_the_place_of_the_ladder():
    own = Remedies(person=True, cures={ErrorCategory.TOOL_CRASH: (Action.SKIP,)})
    decision = decide(fault(ErrorCategory.TOOL_CRASH), Standing(), POLICY, remedies=own)
    assert decision.action is Action.SKIP
    none = Remedies(person=True, cures={ErrorCategory.TOOL_CRASH: ()})
    decision = decide(fault(ErrorCategory.TOOL_CRASH), Standing(), POLICY, remedies=none)
    assert decision.action is Action.ABORT


def test_a_node_says_itself_how_often_a_cure_is_tried():
    often = replace(ALL, times_max={Action.RETRY: 5, Action.REPLAN: 0})
    assert walk(fault(ErrorCategory.TOOL_CRASH), often) == [R] * 5 + [ASK]


def test_without_a_further_attempt_only_others_can_help():
    last = replace(ALL, no_attempt="all 3 attempts are used")
    for category in (ErrorCategory.CHECK_FAILED, ErrorCategory.CONFLICT, ErrorCategory.OVERLOADED):
        decision = decide(fault(category), Standing(), POLICY, remedies=last)
        assert decision.action in {Action.REPLAN, Action.ASK}
        assert "all 3 attempts are used" in decision.reason
