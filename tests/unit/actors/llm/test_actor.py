"""A model actor: it asks, does what the model calls, and goes on where a conversation stands."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError

from cleveragents.actors.llm.actor import LlmActor
from cleveragents.actors.llm.answer import without_fence
from cleveragents.actors.llm.call_failure import call_failure
from cleveragents.actors.llm.prompting import OWN_PROMPTS
from cleveragents.application.conversations import Conversation
from cleveragents.application.services.attempt_recovery import FEEDBACK_MAX
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import (
    BudgetExceeded,
    CleverAgentsError,
    LimitError,
    PlanError,
    ProviderError,
    RequestError,
    SandboxError,
    SetupError,
    StoreError,
)
from cleveragents.domain.money import Money
from cleveragents.domain.plan_options import ContextWish, Recovery
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.infrastructure.sqlite_conversations import SqliteConversations
from cleveragents.providers.model_access.call import Answer
from cleveragents.providers.model_access.rate_bucket import SHARES
from cleveragents.providers.model_access.rate_limiter import RateLimiter, RateLimits
from cleveragents.providers.pricing import Price, PriceTable
from cleveragents.providers.reservation import State
from cleveragents.testing import FrozenClock
from unit.actors.llm.llmkit import COST, MODEL, OTHER, USAGE, fails, say, use

WRITE = ("write_file", {"path": "new.txt", "text": "made\n"})
EDIT = ("edit_file", {"path": "src/app.py", "old": "return 1", "new": "return 2"})
READ = ("read_file", {"path": "src/app.py"})


def test_answer_without_calls_is_the_output(desk):
    result = desk.run(say("Done.\nAll is well."))
    assert result.output == "Done.\nAll is well."
    assert result.summary == "Done."
    assert result.facts["turns"] == 1
    assert result.facts["cost"] == COST


def test_model_is_told_the_goal_the_task_the_inputs_and_the_form(desk):
    node = desk.node(
        "Port it", inputs={"file": "a.py", "count": 2}, outputs=("ok",), writes=("src/*",)
    )
    desk.run(say('{"ok": true, "more": 1}'), node=node, feedback=("The check failed",))
    told = desk.line.told()
    for text in ("Tidy up", "Port it", "- file: a.py", "- count: 2", "`ok`", "- src/*"):
        assert text in told
    assert "The check failed" in told
    system = desk.line.calls[0].messages[0].parts[0].content
    assert "one of several engineers" in system
    assert "version" not in system


def test_tools_are_those_of_the_node(desk):
    desk.run(say("1"))
    names = {one.name for one in desk.line.calls[0].tools}
    assert {"read_file", "edit_file", "run_command", "ask", "context"} <= names
    desk.run(say("2"), node=desk.node("Other", tools=("read_file",)))
    assert [one.name for one in desk.line.calls[1].tools] == ["read_file"]


def test_calls_are_carried_out_in_order_and_told_to_the_model(desk):
    desk.run(use(READ, EDIT, WRITE), say("Done"))
    assert "return 1" in desk.line.results()[0]
    assert desk.line.results()[1].startswith("Edited")
    paths = [entry.path for entry in desk.world.entries()]
    assert paths == ["src/app.py", "new.txt"]
    assert [call.tool for call in desk.journal.calls()] == ["read_file", "edit_file", "write_file"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (("read_file", {"path": "nowhere"}), "nowhere"),
        (("read_file", {"file": "a"}), "`file` is not known"),
        (("read_file", "{broken"), "must be a mapping"),
        (("fly", {}), "There is no tool `fly`"),
        (("run_command", {"command": "exit 1"}), "not allowed here"),
    ],
)
def test_failure_of_a_tool_is_told_to_the_model(desk, call, says):
    node = desk.node(tools=("read_file",))
    assert desk.run(use(call), say("I see"), node=node).output == "I see"
    assert says in desk.line.results()[0]


def test_same_failure_for_the_third_time_is_a_loop(desk):
    wrong = use(("read_file", {"path": "nowhere"}))
    with pytest.raises(RequestError, match="3 times with the same error") as caught:
        desk.run(wrong, wrong, wrong)
    assert caught.value.code == "CA5208"
    assert caught.value.facts["category"] is ErrorCategory.LOOP


def test_store_that_fails_is_no_matter_of_the_model(desk):
    class Broken:
        def record(self, _):
            raise StoreError("no room", code="CA6003")

    parts = desk.parts()
    with pytest.raises(StoreError):
        desk.run(use(READ), parts=replace(parts, tools=replace(parts.tools, journal=Broken())))


def test_lines_of_the_answer_are_logged_as_they_come(desk):
    desk.run(say("first\nsecond"))
    lines = [one for one in desk.world.logged if one in {"first", "second"}]
    assert lines == ["first", "second"]


@pytest.mark.parametrize(
    ("outputs", "text", "output"),
    [
        ("json", "[1, 2]", [1, 2]),
        ("json", '```json\n{"a": 1}\n```', {"a": 1}),
        ("lines", "a\nb", ["a", "b"]),
        (("a",), '{"a": 1, "b": 2}', {"a": 1}),
    ],
)
def test_output_has_the_form_that_the_node_promises(desk, outputs, text, output):
    node = desk.node(f"{outputs}{text}", outputs=outputs)
    assert desk.run(say(text), node=node).output == output


def test_only_a_whole_fence_is_taken_away():
    assert without_fence("```\n1\n```") == "1"
    assert without_fence("see ```1```") == "see ```1```"
    assert without_fence("```") == "```"


@pytest.mark.parametrize(
    "answer", [say(""), replace(say("half"), finish_reason="length"), say("no JSON")]
)
def test_wrong_output_is_refused_and_the_same_conversation_hears_of_it(desk, answer):
    node = desk.node(outputs="json")
    with pytest.raises(SandboxError) as caught:
        desk.run(answer, node=node)
    assert caught.value.code == "CA5204"
    result = desk.run(say("[]"), node=node, attempt=2, feedback=(caught.value.message,))
    assert result.output == []
    assert caught.value.message in desk.line.told()
    assert len(desk.line.calls[1].messages) == 3


@pytest.mark.parametrize(
    ("answer", "category"),
    [
        (say(""), ErrorCategory.BAD_OUTPUT),
        (replace(say("half"), finish_reason="length"), ErrorCategory.BAD_OUTPUT),
        (replace(say("half"), finish_reason="error"), ErrorCategory.BAD_OUTPUT),
        (say("no JSON"), ErrorCategory.BAD_OUTPUT),
        (replace(say("half"), finish_reason="content_filter"), ErrorCategory.CONTENT_FILTER),
        (replace(say(""), finish_reason="content_filter"), ErrorCategory.CONTENT_FILTER),
    ],
    ids=["nothing", "too-long", "broken-off", "wrong-form", "withheld", "withheld-at-once"],
)
def test_answer_that_is_not_whole_is_no_result_and_is_told_as_what_it_is(desk, answer, category):
    """Half an answer with HTTP 200 looks like a whole one; only how it ended tells."""
    with pytest.raises(SandboxError) as caught:
        desk.run(answer, node=desk.node(outputs="json"))
    assert caught.value.code == "CA5204"
    assert caught.value.facts["category"] is category


def test_model_that_does_not_end_is_stopped_and_a_person_decides(desk):
    node = desk.node(turns_max=2)
    with pytest.raises(LimitError) as caught:
        desk.run(use(READ), use(READ), node=node)
    assert caught.value.code == "CA2202"
    assert len(desk.line.calls) == 2
    # Whoever lets it go on gives it as many answers again.
    feedback = (caught.value.message,)
    assert (
        desk.run(use(READ), say("Done"), node=node, attempt=2, feedback=feedback).output == "Done"
    )
    assert len(desk.line.calls) == 4


# -- money ---------------------------------------------------------------------------------


def test_each_answer_is_paid_with_its_exact_cost(desk):
    desk.run(use(READ), say("Done"))
    assert desk.balance().spent == Money(2 * COST.pico)
    assert desk.balance().promised == Money(0)
    assert desk.spent == [COST, COST]


def test_request_that_could_exceed_the_budget_is_not_sent(desk):
    with pytest.raises(BudgetExceeded):
        desk.run(say("never"), budget="0.001")
    assert desk.line.calls == []
    assert desk.balance().promised == Money(0)


def test_shorter_answer_is_asked_for_where_the_budget_has_no_room_for_the_longest(desk):
    desk.run(say("short"), budget="0.02")
    asked = desk.line.calls[0].tokens_max
    assert 256 <= asked < 8192


def test_plan_may_forbid_shorter_answers(desk):
    with pytest.raises(BudgetExceeded):
        desk.run(node=desk.node(lower_tokens=False), budget="0.02")


@pytest.mark.parametrize(
    ("billed", "usage", "spent"),
    [("no", None, Money(0)), ("known", USAGE, COST), ("unknown", None, None)],
)
def test_failed_request_is_charged_by_what_is_known_of_its_bill(desk, billed, usage, spent):
    desk.run(fails(billed=billed, usage=usage), say("Done"))
    unconfirmed = desk.tracker.expire()
    charged = desk.balance().spent - COST
    if spent is None:
        (late,) = unconfirmed
        assert charged == late.upper_bound
    else:
        assert unconfirmed == ()
        assert charged == spent


def test_money_that_stays_charged_because_nobody_knows_the_bill_is_told(desk):
    own = Recovery(cures={ErrorCategory.READ_TIMEOUT: (Action.ASK,)})
    with pytest.raises(ConnectionResetError):
        desk.run(fails(ConnectionResetError("x"), "unknown"), node=desk.node(recovery=own))
    assert sum(one.pico for one in desk.spent) == desk.balance().spent.pico > 0


def test_answer_without_a_usage_stays_charged_at_its_upper_bound(desk):
    desk.run(Answer(say("Done"), None))
    (late,) = desk.tracker.expire()
    assert desk.balance().spent == late.upper_bound


def test_request_that_we_refuse_ourselves_costs_nothing(desk):
    with pytest.raises(RequestError):
        desk.run(RequestError("The line is closed"))
    assert desk.balance().spent == Money(0)
    assert desk.tracker.expire() == ()


def test_stopped_request_may_have_been_billed(desk):
    with pytest.raises(Stopped):
        desk.run(Stopped("enough"))
    assert len(desk.tracker.expire()) == 1


def test_answer_that_cannot_be_kept_is_paid_and_not_used(desk):
    class Lost(type(desk.conversations)):
        def keep(self, *_):
            raise PlanError("another process", code="CA6205")

    desk.conversations = Lost()
    with pytest.raises(PlanError):
        desk.run(use(WRITE))
    assert desk.balance().spent == COST
    assert desk.world.entries() == ()


# -- recovery ------------------------------------------------------------------------------


def test_failed_request_is_asked_again_in_place(desk):
    assert desk.run(fails(), fails(), say("Done")).output == "Done"
    history = desk.errors.history("p-1")
    assert [one.action for one in history.decisions] == [Action.RETRY] * 2
    assert {one.category for one in history.records} == {ErrorCategory.CONNECT}
    assert {one.node for one in history.records} == {"work"}
    assert len(desk.waits) == 2


def test_model_that_cannot_answer_is_replaced(desk):
    node = desk.node(fall_back=(OTHER,))
    result = desk.run(*[fails()] * 3, say("Done"), node=node)
    assert [call.model for call in desk.line.calls] == [MODEL] * 3 + [OTHER]
    assert result.facts["model"] == OTHER


def test_conversation_goes_on_with_the_model_that_answered_last(desk):
    node = desk.node(fall_back=(OTHER,))
    with pytest.raises(Stopped):
        desk.run(*[fails()] * 3, use(READ), Stopped("killed"), node=node)
    desk.run(say("Done"), node=node, attempt=2)
    assert desk.line.calls[-1].model == OTHER


def test_what_cannot_be_cured_here_is_raised_to_the_runner(desk):
    error = PermissionError("no such key")
    error.status_code = 401
    left = []
    with pytest.raises(PermissionError) as caught:
        desk.run(fails(error), hand_over=left.append)
    assert caught.value is error
    history = desk.errors.history("p-1")
    assert history.undecided == history.records == (left[0].record,)
    assert left[0].error is error


def test_cures_of_the_node_count(desk):
    recovery = Recovery(cures={ErrorCategory.CONNECT: (Action.ABORT,)})
    with pytest.raises(ConnectionError):
        desk.run(fails(), node=desk.node(recovery=recovery))
    assert len(desk.line.calls) == 1


def test_sick_model_is_paused_for_all_and_its_fall_back_is_asked(desk):
    parts = desk.parts()
    node = desk.node(fall_back=(OTHER,))
    desk.run(*[fails()] * 3, say("1"), node=node, parts=parts)
    assert parts.breaker.is_open(MODEL)
    assert not parts.breaker.is_open(OTHER)
    other = desk.node("Another", name="other", fall_back=(OTHER,))
    desk.run(say("2"), node=other, parts=parts)
    assert desk.line.calls[-1].model == OTHER
    assert desk.errors.history("p-1").records[-1].provider_code == "CA3107"


def test_refused_question_is_no_fault_of_the_model(desk):
    class RefusedError(Exception):
        status_code = 400

    parts = desk.parts()
    with pytest.raises(RefusedError):
        desk.run(fails(RefusedError("nonsense")), parts=parts)
    assert parts.breaker.snapshot() == ()


def test_too_long_conversation_leaves_out_its_oldest_results(desk):
    class OverflowingError(Exception):
        status_code = 413

    desk.run(use(READ), use(READ), use(READ), fails(OverflowingError("too long")), say("Done"))
    sent = [
        part.content
        for message in desk.line.calls[-1].messages
        for part in message.parts
        if part.part_kind == "tool-return"
    ]
    assert "left out" in sent[0]
    assert "return 1" in sent[-1]
    assert desk.errors.history("p-1").decisions[-1].action is Action.SHRINK


OVERFLOW = ModelHTTPError(
    400, "m", body={"error": {"code": "context_length_exceeded", "message": "too long"}}
)


def test_result_that_is_too_long_when_it_is_told_is_cut_in_the_middle(desk):
    text = "\n".join(map(str, range(2_000)))
    write = ("write_file", {"path": "long.txt", "text": text})
    read = ("read_file", {"path": "long.txt"})
    result = desk.run(use(write), use(READ, read), fails(OVERFLOW), say("Done"))
    assert result.output == "Done"
    before, after = desk.line.results(-2), desk.line.results(-1)
    assert after[0] == before[0]
    assert "left out" in after[1]
    assert len(after[1]) < len(before[1]) / 3
    # What was cut is kept as it was told, and the attempt after this one goes on with it.
    assert desk.run(node=desk.node(), attempt=2).output == "Done"


def test_short_results_that_wait_for_an_answer_are_not_what_is_too_long(desk):
    with pytest.raises(ProviderError):
        desk.run(use(READ), fails(OVERFLOW))


def test_rate_that_leaves_no_room_is_a_fault_like_others(desk):
    limiter = RateLimiter()
    limiter.hold("test", 10**9)
    with pytest.raises(Exception, match="The rate of provider"):
        desk.run(say("never"), parts=desk.parts(limiter=limiter))
    assert desk.errors.history("p-1").count >= 1
    assert desk.line.calls == []


class StatusError(Exception):
    def __init__(self, code, **headers):
        super().__init__("no")
        self.status_code, self.headers = code, headers


ESTIMATE = "the estimate"


@pytest.mark.parametrize(
    ("answer", "budget", "requests", "tokens"),
    [
        (say("Done"), None, 1, 120),
        (Answer(say("Done"), None), None, 1, ESTIMATE),
        (say("never"), "0.000001", 0, 0),
        (RequestError("we cannot send this"), None, 0, 0),
        (fails(StatusError(401)), None, 1, 0),
        (fails(StatusError(401), "known", USAGE), None, 1, 120),
        (fails(StatusError(401), "unknown", USAGE), None, 1, ESTIMATE),
        (Stopped("enough"), None, 1, ESTIMATE),
    ],
    ids=["told", "not-told", "no-money", "not-sent", "refused", "known", "lost", "stopped"],
)
def test_rate_is_charged_with_what_was_sent_and_no_more(desk, answer, budget, requests, tokens):
    limiter = RateLimiter({"test": RateLimits(100, 10**6)}, clock=FrozenClock())
    with suppress(CleverAgentsError, StatusError, Stopped):
        desk.run(answer, budget=budget, parts=desk.parts(limiter=limiter))
    line = limiter._lines["test"]
    assert line._requests.bucket.level == (100 - requests) * SHARES
    used = 10**6 - line._tokens.bucket.level // SHARES
    assert used > 8_192 if tokens is ESTIMATE else used == tokens


def test_provider_that_says_when_to_come_back_is_left_alone_by_all_plans_until_then(desk):
    clock = FrozenClock()
    limiter = RateLimiter(clock=clock)

    def go() -> None:
        limiter.acquire("test", plan="another", tokens=1, timeout_s=0)

    def wait(_, seconds: float) -> None:
        with pytest.raises(ProviderError):
            go()
        clock.advance(seconds)
        go()

    limited = fails(StatusError(429, **{"retry-after": "0.01"}))
    assert desk.run(limited, say("Done"), parts=desk.parts(limiter=limiter, pause=wait)).output


def test_fall_back_of_the_same_provider_does_not_wait_for_the_other_model(desk):
    limiter = RateLimiter(clock=FrozenClock())
    recovery = Recovery(cures={ErrorCategory.RATE_LIMIT: (Action.FALL_BACK,)})
    node = desk.node(fall_back=(OTHER,), recovery=recovery)
    limited = fails(StatusError(429, **{"retry-after": "9"}))
    desk.run(limited, say("Done"), node=node, parts=desk.parts(limiter=limiter))
    assert [one.model for one in desk.line.calls] == [MODEL, OTHER]


def test_stop_is_heeded_before_anything_is_asked(desk):
    stop = StopSignal()
    stop.stop("enough")
    with pytest.raises(Stopped):
        desk.run(say("never"), stop=stop)
    assert desk.line.calls == []


# -- going on ------------------------------------------------------------------------------


def test_killed_attempt_goes_on_and_pays_for_no_answer_again(desk):
    with pytest.raises(Stopped):
        desk.run(use(READ), use(EDIT, WRITE), Stopped("killed"))
    assert desk.run(say("Done"), attempt=2).output == "Done"
    assert len(desk.line.calls) == 4
    assert {entry.path for entry in desk.world.entries()} == {"src/app.py", "new.txt"}
    # What the tools said then is what the model hears now.
    assert desk.line.results() == desk.line.results(-2)


def test_calls_that_were_not_carried_out_are_carried_out_now(desk):
    class Dies:
        """A journal that dies with the process, at the first call."""

        def record(self, _):
            raise Stopped("killed")

    parts = desk.parts()
    with pytest.raises(Stopped):
        desk.run(use(WRITE), parts=replace(parts, tools=replace(parts.tools, journal=Dies())))
    desk.run(say("Done"), attempt=2)
    assert [entry.path for entry in desk.world.entries()] == ["new.txt"]
    assert len(desk.line.calls) == 2


def test_finished_answer_whose_result_was_lost_is_given_again(desk):
    desk.run(use(WRITE), say("Done"))
    assert desk.run(attempt=2).output == "Done"
    assert len(desk.line.calls) == 2
    assert [entry.path for entry in desk.world.entries()] == ["new.txt"]


def test_failed_check_is_told_in_the_same_conversation(desk):
    desk.run(use(WRITE), say("Done"))
    assert desk.run(say("Now"), attempt=2, feedback=("2 tests failed",)).output == "Now"
    assert "2 tests failed" in desk.line.told()
    # Told once, not with every further attempt.
    desk.run(attempt=3, feedback=("2 tests failed",))
    assert len(desk.line.calls) == 3


def test_same_failure_once_more_is_told_once_more(desk):
    """Or the last answer, which did not help, would be handed in again without a question."""
    desk.run(say("First"))
    desk.run(say("Second"), attempt=2, feedback=("2 tests failed",))
    again = ("2 tests failed", "2 tests failed")
    assert desk.run(say("Third"), attempt=3, feedback=again).output == "Third"
    assert desk.line.told().count("2 tests failed") == 2


def test_same_failure_is_told_also_when_older_ones_are_forgotten(desk):
    """The runner keeps the newest failures only: as many as were told, and none is new by count."""
    failed = ("2 tests failed",) * FEEDBACK_MAX
    desk.run(say("0"))
    for attempt in range(2, FEEDBACK_MAX + 2):
        desk.run(say("Same"), attempt=attempt, feedback=failed[: attempt - 1])
    last = desk.run(say("Other"), attempt=FEEDBACK_MAX + 2, feedback=failed)
    assert last.output == "Other"
    assert desk.line.told().count("2 tests failed") == FEEDBACK_MAX + 1


def seen_otherwise(desk, *answers):
    """Let a conversation be kept whose first file was another one when the model saw it."""
    with pytest.raises(Stopped):
        desk.run(*answers, Stopped("killed"))
    ((key, kept),) = desk.conversations._open.items()
    last = kept.turns[-1]
    marked = last.request.replace('"sha256":"', '"sha256":"0')
    desk.conversations._open[key] = replace(
        kept, turns=(*kept.turns[:-1], replace(last, request=marked))
    )
    return kept


def test_file_that_others_changed_lets_the_conversation_begin_anew(desk):
    seen_otherwise(desk, use(READ), use(READ))
    result = desk.run(say("Anew"), attempt=2)
    assert result.facts["turns"] == 1
    assert any("was changed by others" in line for line in desk.world.logged)


def test_half_repeated_work_ends_the_attempt_because_its_sandbox_is_not_clean(desk):
    seen_otherwise(desk, use(WRITE), use(READ), use(READ))
    with pytest.raises(PlanError, match="cannot be done again") as caught:
        desk.run(attempt=2)
    assert caught.value.facts["category"] is ErrorCategory.CONFLICT
    assert desk.run(say("Anew"), attempt=3).facts["turns"] == 1


def test_change_that_does_not_work_any_more_ends_the_conversation(desk):
    with pytest.raises(Stopped):
        desk.run(use(EDIT), use(READ), Stopped("killed"))
    ((key, kept),) = desk.conversations._open.items()
    first = replace(kept.turns[0], response=kept.turns[0].response.replace("return 1", "return 9"))
    desk.conversations._open[key] = replace(kept, turns=(first, *kept.turns[1:]))
    with pytest.raises(PlanError, match="does not work any more"):
        desk.run(attempt=2)


def test_conversation_that_cannot_be_read_begins_anew(desk):
    with pytest.raises(Stopped):
        desk.run(use(READ), Stopped("killed"))
    ((key, kept),) = desk.conversations._open.items()
    for broken in ("{", kept.turns[0].response):
        turns = (replace(kept.turns[0], request=broken),)
        desk.conversations._open[key] = replace(kept, turns=turns)
        desk.line.answers.clear()
        assert desk.run(say("Anew"), attempt=2).facts["turns"] == 1
        assert any("cannot be read" in line for line in desk.world.logged)


def test_changed_task_is_another_conversation(desk):
    desk.run(say("One"))
    assert desk.run(say("Two"), node=desk.node("Something else"), attempt=2).output == "Two"


def test_answer_that_was_kept_and_not_paid_is_paid_by_the_next_attempt(desk, monkeypatch):
    """The process dies between the two: its promise is charged at the upper bound until then."""
    from cleveragents.infrastructure.purses import HeldMoney

    def dies(*_):
        raise Stopped("killed")

    with monkeypatch.context() as patched:
        patched.setattr(HeldMoney, "settle", dies)
        with pytest.raises(Stopped):
            desk.run(use(READ))
    (late,) = desk.tracker.expire()
    assert late.state is State.UNCONFIRMED
    assert desk.balance().spent > COST
    desk.run(say("Done"), attempt=2)
    assert desk.tracker.expire() == ()
    assert desk.balance().spent == Money(2 * COST.pico)


def test_everything_holds_with_the_durable_conversations(desk):
    desk.conversations = SqliteConversations(desk.tracker._store)
    with pytest.raises(Stopped):
        desk.run(use(READ), use(EDIT), Stopped("killed"))
    result = desk.run(say("Done"), attempt=2)
    assert result.facts["turns"] == 3
    # The provider's own count bounds what it counted: only what is new is bounded by bytes.
    assert isinstance(desk.conversations.open("p-1", "work", "?"), Conversation)


def test_store_that_fails_while_work_is_repeated_does_not_end_the_conversation(desk):
    class Broken:
        def record(self, _):
            raise StoreError("no room", code="CA6003")

    with pytest.raises(Stopped):
        desk.run(use(WRITE), Stopped("killed"))
    with pytest.raises(Stopped):
        desk.run(use(READ), Stopped("killed"), attempt=2)
    parts = desk.parts()
    with pytest.raises(StoreError):
        desk.run(attempt=3, parts=replace(parts, tools=replace(parts.tools, journal=Broken())))
    assert desk.run(say("Done"), attempt=4).facts["turns"] == 3


# -- asking the user -----------------------------------------------------------------------

ASK = ("ask", {"question": "Tabs or blanks?"})


def test_question_to_the_user_ends_the_attempt_with_the_question(desk):
    with pytest.raises(PlanError) as caught:
        desk.run(use(ASK))
    assert caught.value.code == "CA5209"
    assert caught.value.facts["question"] == "Tabs or blanks?"
    assert caught.value.facts["category"] is ErrorCategory.QUESTION
    feedback = (caught.value.message, "Tabs")
    desk.run(say("Done"), attempt=2, feedback=feedback)
    assert desk.line.results() == ["Tabs"]
    assert len(desk.line.calls) == 2
    # It is no news beside: the model heard it as the answer to its question.
    assert "Tabs" not in desk.line.told()


def test_question_that_nobody_answers_is_the_model_s_to_decide(desk):
    with pytest.raises(PlanError) as caught:
        desk.run(use(ASK))
    desk.run(say("Done"), attempt=2, feedback=(caught.value.message,))
    assert desk.line.results()[0].startswith("Nobody answered")


# -- context and prompts -------------------------------------------------------------------


def test_context_is_shown_where_the_plan_wants_it(desk):
    asked = []

    def find(request):
        asked.append(request)
        return "def main(): ..."

    node = desk.node(context=ContextWish(task="main", tokens_max=500))
    desk.run(say("Done"), node=node, find_context=find)
    assert "def main(): ..." in desk.line.told()
    assert asked[0].tokens_max == 500
    assert asked[0].task == "main"


def test_model_may_look_for_context_itself(desk):
    call = ("context", {"task": "main"})
    desk.run(use(call), say("1"), find_context=lambda _: "here")
    assert desk.line.results() == ["here"]
    desk.run(use(call), say("2"), node=desk.node("Other"))
    assert "No context can be looked for" in desk.line.results()[0]


def test_actor_knows_what_it_falls_back_on_and_checks_all_its_models(desk):
    node = desk.node(fall_back=(OTHER,))
    actor = LlmActor(node.actor, desk.parts())
    actor.check()
    assert desk.line.checked == [(MODEL, None), (OTHER, None)]
    assert actor.fall_back.models == [OTHER]
    assert actor.fall_back.fall_back is None


def test_address_holds_for_the_models_of_one_provider_and_the_time_for_each_call(desk):
    url, elsewhere = "http://localhost:1/v1", "another:small"
    models = (elsewhere, OTHER)
    node = desk.node(fall_back=models, base_url=url, call_timeout_s=7.0)
    prices = {one: Price(input_mtok=1, output_mtok=2) for one in (MODEL, *models)}
    parts = desk.parts(prices=PriceTable(prices))
    actor = LlmActor(node.actor, parts)
    actor.check()
    assert desk.line.checked == [(MODEL, url), (elsewhere, None), (OTHER, url)]
    desk.run(*[fails()] * 4, say("Done"), node=node, parts=parts)
    assert [(one.model, one.base_url) for one in desk.line.calls[2:]] == desk.line.checked
    assert {one.timeout_s for one in desk.line.calls} == {7.0}


def test_model_without_a_price_and_orders_that_cannot_be_read_are_refused_before_a_run(
    desk, tmp_path
):
    with pytest.raises(SetupError) as caught:
        LlmActor(desk.node(fall_back=("test:unknown",)).actor, desk.parts()).check()
    assert caught.value.code == "CA1004"
    own = tmp_path / OWN_PROMPTS
    own.mkdir(parents=True)
    (own / "tools.md").write_bytes(b"\xff")
    with pytest.raises(SetupError, match=r"tools\.md"):
        LlmActor(desk.node().actor, desk.parts(root=tmp_path)).check()


# -- what is told of failed calls ----------------------------------------------------------

KEY_IS_WRONG = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}


@pytest.mark.parametrize(
    ("error", "message", "category"),
    [
        (
            ModelHTTPError(401, "small", body=KEY_IS_WRONG),
            "`openai:small` refused: HTTP 401 `invalid_api_key`: Incorrect API key provided",
            ErrorCategory.AUTH,
        ),
        (
            ModelConnectionError("small", "Connection error.", phase="connect"),
            "`openai:small` cannot be reached at `http://localhost:1`",
            ErrorCategory.CONNECT,
        ),
        (
            ModelConnectionError("small", "It broke", phase="read"),
            "The call of `openai:small` was lost: It broke",
            ErrorCategory.READ_TIMEOUT,
        ),
    ],
    ids=["refused", "not-there", "lost"],
)
def test_failed_call_is_told_with_a_code_a_sentence_and_no_secret(desk, error, message, category):
    own = Recovery(cures={category: (Action.ASK,)})
    node = desk.node(
        model="openai:small", base_url="http://user:secret@localhost:1/v1", recovery=own
    )
    parts = desk.parts(prices=PriceTable({"openai:small": Price(input_mtok=1, output_mtok=2)}))
    left = []
    with pytest.raises(ProviderError) as caught:
        desk.run(fails(error), node=node, parts=parts, hand_over=left.append)
    told = caught.value
    assert [(one.error, one.record.message) for one in left] == [(told, message)]
    assert (told.code, told.message, told.facts["category"]) == ("CA3110", message, category)
    assert told.hint
    assert told.__cause__ is None
    if category is ErrorCategory.CONNECT:
        at_home = call_failure(error, "openai:small", None).message
        assert at_home == "`openai:small` cannot be reached at `api.openai.com`"
    (kept,) = desk.errors.history("p-1").records
    assert "{'" not in kept.message
