from __future__ import annotations

import contextvars
import threading

import pytest

from cleveragents.actors.tool import Permission, Tool
from cleveragents.actors.tool_journal import MemoryToolJournal
from cleveragents.actors.tool_registry import ToolRegistry
from cleveragents.actors.tool_service import ToolLimits, ToolService
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import RequestError, SandboxError
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.testing import FrozenClock
from unit.actors.attemptkit import IDLE, AttemptContext, Node, RealPurse

WHO = contextvars.ContextVar("who", default="nobody")


def attempt_of(stop=None, plan="p-1", instance="work[1]"):
    """Tools without files need no bench."""
    return AttemptContext(
        plan_id=plan,
        goal="Tidy up",
        node=Node(name="work", actor=IDLE),
        instance=instance,
        attempt=2,
        inputs={},
        bench=None,
        purse=RealPurse(),
        stop=stop or StopSignal(),
        log=print,
    )


def service_of(run, limits=None, **options):
    told = Tool(name="tool", description="…", run=run, **options)
    ids = iter(range(1, 100))
    return ToolService(
        ToolRegistry((told,)),
        MemoryToolJournal(),
        limits or ToolLimits(),
        FrozenClock(),
        lambda: f"t-{next(ids)}",
    )


def test_answer_and_record_tell_the_same_call():
    service = service_of(lambda call: f"{call.id} for {call.attempt.instance}")
    result = service.call(attempt_of(), "tool", {})
    assert (result.call_id, result.text, result.cut) == ("t-1", "t-1 for work[1]", False)
    (kept,) = service.journal.calls()
    assert (kept.call_id, kept.plan_id, kept.node, kept.attempt) == ("t-1", "p-1", "work[1]", 2)
    assert (kept.actor, kept.tool, kept.arguments) == ("scripted", "tool", "{}")
    assert (kept.at, kept.result_chars, kept.error) == (FrozenClock()(), 15, None)
    assert kept.duration_s >= 0


def test_tool_runs_in_the_context_of_its_caller():
    WHO.set("me")
    assert service_of(lambda _: WHO.get()).call(attempt_of(), "tool", {}).text == "me"


@pytest.mark.parametrize(
    ("allowed", "limits", "says"),
    [
        (("other",), ToolLimits(), "`tools` of its node must name it, got other"),
        ((), ToolLimits(), "got none"),
        (None, ToolLimits(permissions=frozenset({Permission.READ})), "tools that run are not"),
    ],
    ids=["other", "none", "read-only"],
)
def test_tool_that_is_not_allowed_is_denied_and_on_record(allowed, limits, says):
    service = service_of(lambda _: "", limits, permission=Permission.RUN)
    with pytest.raises(SandboxError) as caught:
        service.call(attempt_of(), "tool", {}, allowed=allowed)
    assert caught.value.code == "CA5202"
    assert caught.value.facts["category"] is ErrorCategory.TOOL_DENIED
    assert says in caught.value.message
    assert [call.error_code for call in service.journal.calls()] == ["CA5202"]


def test_tool_that_is_named_is_allowed():
    assert service_of(lambda _: "ok").call(attempt_of(), "tool", {}, allowed={"tool"}).text == "ok"


@pytest.mark.parametrize(("name", "arguments"), [("tol", {}), ("tool", {"x": 1}), ("tool", "x")])
def test_mistakes_of_the_caller_are_on_record(name, arguments):
    service = service_of(lambda _: "")
    with pytest.raises(RequestError) as caught:
        service.call(attempt_of(), name, arguments)
    (kept,) = service.journal.calls()
    assert (kept.tool, kept.error_code) == (name, "CA5203")
    assert kept.error == caught.value.message


def test_what_a_tool_raises_comes_as_it_is_and_is_on_record():
    def broken(_):
        raise LookupError("password=hunter2hunter2")

    service = service_of(broken)
    with pytest.raises(LookupError, match="hunter2"):
        service.call(attempt_of(), "tool", {})
    (kept,) = service.journal.calls()
    assert (kept.error_code, kept.error) == ("LookupError", "password=[redacted]")


def test_timeout_error_of_a_tool_is_its_own():
    def broken(_):
        raise TimeoutError("of the network")

    with pytest.raises(TimeoutError, match="of the network"):
        service_of(broken).call(attempt_of(), "tool", {})


def test_secrets_and_long_arguments_stay_out_of_the_record():
    service = service_of(lambda _: "")
    arguments = {"password": "hunter2hunter2", "text": "x" * 9_000, "n": 1}
    with pytest.raises(RequestError):
        service.call(attempt_of(), "tool", arguments)
    (kept,) = service.journal.calls()
    assert "hunter2" not in kept.arguments
    assert "[redacted]" in kept.arguments
    assert len(kept.arguments) < 700


def test_long_answer_loses_its_middle():
    service = service_of(lambda _: "a" * 600 + "b" * 600, ToolLimits(result_chars_max=100))
    result = service.call(attempt_of(), "tool", {})
    assert result.cut
    assert result.text == "a" * 50 + "\n[… 1100 characters left out …]\n" + "b" * 50


def waiting(call):
    """A tool that heeds its stop signal."""
    stopped = threading.Event()
    call.stop.when_stopped(lambda _: stopped.set())
    stopped.wait(10)
    call.stop.raise_if_stopped()
    return "ended by itself"


def test_tool_out_of_time_is_asked_to_stop():
    service = service_of(waiting, timeout_s=0.05)
    with pytest.raises(SandboxError) as caught:
        service.call(attempt_of(), "tool", {})
    assert (caught.value.code, caught.value.facts["hung"]) == ("CA5005", False)
    assert caught.value.facts["category"] is ErrorCategory.TOOL_TIMEOUT
    assert [call.error_code for call in service.journal.calls()] == ["CA5005"]


def test_tool_that_hangs_is_left_alone_after_the_grace():
    free = threading.Event()

    def hung(_):
        free.wait(10)
        return "too late"

    service = service_of(hung, ToolLimits(grace_s=0.05), timeout_s=0.05)
    with pytest.raises(SandboxError) as caught:
        service.call(attempt_of(), "tool", {})
    assert (caught.value.code, caught.value.facts["hung"]) == ("CA5005", True)
    free.set()


def test_tool_that_ends_within_the_grace_has_answered():
    def slow(call):
        with pytest.raises(Stopped):
            waiting(call)
        return "in time"

    assert service_of(slow, timeout_s=0.05).call(attempt_of(), "tool", {}).text == "in time"


def test_stop_of_the_attempt_stops_the_tool():
    stop = StopSignal()
    service = service_of(lambda call: (stop.stop("cancelled by a person"), waiting(call)))
    with pytest.raises(Stopped, match="cancelled by a person"):
        service.call(attempt_of(stop), "tool", {})
    assert [call.error_code for call in service.journal.calls()] == ["Stopped"]


def test_stopped_attempt_calls_nothing_more():
    stop = StopSignal()
    stop.stop("over")
    with pytest.raises(Stopped, match="over"):
        service_of(lambda _: pytest.fail("called")).call(attempt_of(stop), "tool", {})


def test_tool_that_stops_itself_is_told_as_stopped():
    def gives_up(_):
        raise Stopped("no reason")

    with pytest.raises(Stopped, match="stopped by the tool"):
        service_of(gives_up).call(attempt_of(), "tool", {})


def test_tool_is_asked_to_stop_after_its_call():
    signals = []
    service_of(lambda call: signals.append(call.stop) or "").call(attempt_of(), "tool", {})
    assert signals[0].reason == "the call has ended"


def test_ids_of_calls_differ_by_default():
    service = ToolService(service_of(lambda call: call.id).registry, MemoryToolJournal())
    texts = {service.call(attempt_of(), "tool", {}).text for _ in range(5)}
    assert len(texts) == 5
