"""Every fault is recognised by what it is, never by what it says."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import pickle
import socket
import ssl
import subprocess
import urllib.error

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.application.services.error_classification import classify, describe, normalised
from cleveragents.domain.error_record import ErrorCategory as Is
from cleveragents.domain.error_record import SideEffects
from cleveragents.domain.errors import (
    BudgetExceeded,
    CircuitOpen,
    InternalError,
    PlanError,
    ProviderError,
    RequestError,
    SetupError,
)
from cleveragents.domain.stop_signal import Stopped

NOW_S = 1_000.0


def foreign(path: str, *bases: type, **attributes: object) -> Exception:
    """Raise-able stand-in for an SDK's exception: the right package, name and attributes."""
    module, _, name = path.rpartition(".")
    kind = type(name, bases or (Exception,), {"__module__": module})
    error = kind("some text")
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    return error


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def body(**error: object) -> dict[str, object]:
    return {"error": error}


def status(http: int, path: str = "openai.APIStatusError", /, **error: object) -> Exception:
    return foreign(path, status_code=http, body=body(message="text", **error))


TABLE = {
    # status alone
    "429": (status(429), Is.RATE_LIMIT),
    "402": (status(402), Is.QUOTA),
    "400": (status(400), Is.BAD_REQUEST),
    "418": (status(418), Is.BAD_REQUEST),
    "401": (status(401), Is.AUTH),
    "403": (status(403), Is.AUTH),
    "404": (status(404), Is.AUTH),
    "413": (status(413), Is.CONTEXT_OVERFLOW),
    "500": (status(500), Is.OVERLOADED),
    "503": (status(503), Is.OVERLOADED),
    "529": (status(529), Is.OVERLOADED),
    "504": (status(504), Is.READ_TIMEOUT),
    "501": (status(501), Is.BAD_REQUEST),
    # codes outrank the status
    "openai quota": (status(429, code="insufficient_quota"), Is.QUOTA),
    "openai limit": (status(429, type="tokens", code="rate_limit_exceeded"), Is.RATE_LIMIT),
    "openai context": (status(400, code="context_length_exceeded"), Is.CONTEXT_OVERFLOW),
    "openai filter": (status(400, code="content_filter"), Is.CONTENT_FILTER),
    "openai key": (status(401, type="invalid_request_error"), Is.AUTH),
    "openai model": (status(400, code="model_not_found"), Is.AUTH),
    "anthropic stream": (
        status(200, "anthropic.APIStatusError", type="overloaded_error"),
        Is.OVERLOADED,
    ),
    "anthropic billing": (status(400, "anthropic.APIStatusError", type="billing_error"), Is.QUOTA),
    "anthropic spend": (
        status(
            429,
            "anthropic.RateLimitError",
            type="rate_limit_error",
            details={"error_code": "enforced_spend_limit_reached"},
        ),
        Is.QUOTA,
    ),
    "google limit": (
        foreign(
            "google.genai.errors.ClientError", code=429, details=body(status="RESOURCE_EXHAUSTED")
        ),
        Is.RATE_LIMIT,
    ),
    "google daily quota": (
        foreign(
            "google.genai.errors.ClientError",
            code=429,
            details=body(
                status="RESOURCE_EXHAUSTED",
                details=["?", {"violations": ["?", {"quotaId": "RequestsPerDayPerProject"}]}],
            ),
        ),
        Is.QUOTA,
    ),
    "google key": (
        foreign(
            "google.genai.errors.ClientError",
            code=400,
            details=[body(status="INVALID_ARGUMENT", details=[{"reason": "API_KEY_INVALID"}])],
        ),
        Is.AUTH,
    ),
    "aws throttle": (
        foreign(
            "botocore.exceptions.ClientError",
            response={
                "Error": {"Code": "ThrottlingException"},
                "ResponseMetadata": {"HTTPStatusCode": 400},
            },
        ),
        Is.RATE_LIMIT,
    ),
    "stream event": (foreign("openai.APIError", body={"code": "server_error"}), Is.OVERLOADED),
    # classes, with no other fact
    "openai.RateLimitError": (foreign("openai.RateLimitError"), Is.RATE_LIMIT),
    "openai no key": (foreign("openai.OpenAIError"), Is.AUTH),
    "openai length": (foreign("openai.LengthFinishReasonError"), Is.BAD_OUTPUT),
    "httpx connect": (foreign("httpx.ConnectError"), Is.CONNECT),
    "httpx2 pool": (foreign("httpx2.PoolTimeout"), Is.CONNECT),
    "httpx read": (foreign("httpx.ReadTimeout"), Is.READ_TIMEOUT),
    "requests connect": (foreign("requests.exceptions.ConnectTimeout"), Is.CONNECT),
    "urllib3 read": (foreign("urllib3.exceptions.ReadTimeoutError"), Is.READ_TIMEOUT),
    "botocore key": (foreign("botocore.exceptions.NoCredentialsError"), Is.AUTH),
    "pydantic-ai quota": (foreign("pydantic_ai.exceptions.ModelQuotaExceededError"), Is.QUOTA),
    "pydantic-ai output": (
        foreign("pydantic_ai.exceptions.UnexpectedModelBehavior"),
        Is.BAD_OUTPUT,
    ),
    "pydantic-ai usage": (foreign("pydantic_ai.exceptions.UsageLimitExceeded"), Is.BUDGET),
    "pydantic-ai pool": (
        foreign("pydantic_ai.exceptions.ModelTimeoutError", phase="pool"),
        Is.CONNECT,
    ),
    "pydantic-ai read": (
        foreign("pydantic_ai.exceptions.ModelTimeoutError", phase="read"),
        Is.READ_TIMEOUT,
    ),
    "pydantic-ai open phase": (
        foreign(
            "pydantic_ai.exceptions.ModelTimeoutError",
            type(foreign("pydantic_ai.exceptions.ModelConnectionError")),
            phase=None,
        ),
        Is.READ_TIMEOUT,
    ),
    # the standard library
    "refused": (ConnectionRefusedError(), Is.CONNECT),
    "no such host": (socket.gaierror(), Is.CONNECT),
    "reset": (ConnectionResetError(), Is.READ_TIMEOUT),
    "timeout": (TimeoutError(), Is.READ_TIMEOUT),
    "certificate": (ssl.SSLCertVerificationError(), Is.AUTH),
    "json": (json.JSONDecodeError("m", "d", 0), Is.BAD_OUTPUT),
    "urllib": (urllib.error.HTTPError("http://x", 503, "m", None, None), Is.OVERLOADED),
    "urllib reason": (urllib.error.URLError(ConnectionRefusedError()), Is.CONNECT),
    "denied": (PermissionError(), Is.TOOL_DENIED),
    "busy": (BlockingIOError(), Is.TOOL_TRANSIENT),
    "command": (subprocess.TimeoutExpired("ls", 1), Is.TOOL_TIMEOUT),
    "value": (ValueError("rate limit exceeded, error 429, quota"), Is.UNKNOWN),
    # ours
    "budget": (BudgetExceeded("m"), Is.BUDGET),
    "breaker": (CircuitOpen("m", facts={"retry_after_s": 2}), Is.OVERLOADED),
    "gate": (ProviderError("m", code="CA3108", facts={"retry_after_s": 2}), Is.RATE_LIMIT),
    "setup": (SetupError("m"), Is.AUTH),
    "request": (RequestError("m"), Is.BAD_REQUEST),
    "changeset": (PlanError("m"), Is.BAD_REQUEST),
    "conflict": (PlanError("m", code="CA4101"), Is.CONFLICT),
    "internal": (InternalError("m"), Is.BUG),
    # wanted
    "ctrl-c": (KeyboardInterrupt(), Is.CANCELLED),
    "task": (asyncio.CancelledError(), Is.CANCELLED),
    "future": (concurrent.futures.CancelledError(), Is.CANCELLED),
    "stopped": (Stopped("enough"), Is.CANCELLED),
}


@pytest.mark.parametrize(("error", "category"), TABLE.values(), ids=TABLE.keys())
def test_a_fault_is_recognised_by_its_facts(error, category):
    assert classify(error, NOW_S).category is category


@given(
    st.sampled_from(
        ["rate limit 429", "insufficient_quota", "timeout", "context_length_exceeded", "401"]
    )
)
def test_message_text_alone_never_decides(text):
    assert classify(RuntimeError(text), NOW_S).category is Is.UNKNOWN
    assert classify(Exception({"error": {"code": text}}), NOW_S).category is Is.UNKNOWN


@pytest.mark.parametrize(
    ("sentence", "category"),
    [
        ("prompt is too long: 210,000 tokens", Is.CONTEXT_OVERFLOW),
        ("The input token count (9) exceeds the maximum", Is.CONTEXT_OVERFLOW),
        ("Your credit balance is too low", Is.QUOTA),
        ("messages: roles must alternate", Is.BAD_REQUEST),
    ],
)
def test_a_providers_sentence_refines_a_refused_request_and_nothing_else(sentence, category):
    assert (
        classify(foreign("a.B", status_code=400, body=body(message=sentence)), NOW_S).category
        is category
    )
    assert (
        classify(foreign("a.B", status_code=500, body=body(message=sentence)), NOW_S).category
        is Is.OVERLOADED
    )


def test_402_with_a_time_to_come_back_is_a_rate_limit():
    error = foreign("a.B", status_code=402, headers={"Retry-After": "30"})
    verdict = classify(error, NOW_S)
    assert (verdict.category, verdict.evidence.retry_after_s) == (Is.RATE_LIMIT, 30.0)


class TestChains:
    def test_a_wrapper_is_what_caused_it(self):
        inner = status(429, code="insufficient_quota")
        assert classify(caused(RuntimeError("node failed"), inner), NOW_S).category is Is.QUOTA

    def test_a_vague_connection_error_is_what_its_cause_says(self):
        vague = foreign("openai.APIConnectionError")
        assert classify(vague, NOW_S).category is Is.READ_TIMEOUT
        assert classify(caused(vague, foreign("httpx2.ConnectError")), NOW_S).category is Is.CONNECT

    def test_the_context_counts_unless_it_is_suppressed(self):
        error = RuntimeError("while cleaning up")
        error.__context__ = ConnectionRefusedError()
        assert classify(error, NOW_S).category is Is.CONNECT
        error.__suppress_context__ = True
        assert classify(error, NOW_S).category is Is.UNKNOWN

    def test_a_timeout_that_cancelled_its_work_is_a_timeout(self):
        error = caused(TimeoutError(), asyncio.CancelledError())
        assert classify(error, NOW_S).category is Is.READ_TIMEOUT

    def test_a_circle_of_causes_ends(self):
        first, second = RuntimeError("a"), RuntimeError("b")
        first.__cause__, second.__cause__ = second, first
        assert classify(first, NOW_S).category is Is.UNKNOWN


class TestGroups:
    def test_an_incurable_member_decides(self):
        group = ExceptionGroup("all", [status(429), BudgetExceeded("m"), ValueError()])
        assert classify(group, NOW_S).category is Is.BUDGET

    def test_the_first_telling_member_decides_otherwise(self):
        group = ExceptionGroup("all", [ValueError(), status(503), status(429)])
        assert classify(group, NOW_S).category is Is.OVERLOADED

    def test_a_cancelled_member_is_not_the_fault(self):
        group = BaseExceptionGroup("all", [asyncio.CancelledError(), status(429)])
        assert classify(group, NOW_S).category is Is.RATE_LIMIT

    def test_a_group_of_cancelled_members_is_cancelled(self):
        group = BaseExceptionGroup("all", [asyncio.CancelledError(), KeyboardInterrupt()])
        assert classify(group, NOW_S).category is Is.CANCELLED

    def test_a_group_that_tells_nothing_is_unknown(self):
        assert classify(ExceptionGroup("all", [ValueError()]), NOW_S).category is Is.UNKNOWN
        mixed = BaseExceptionGroup("all", [KeyboardInterrupt(), ValueError()])
        assert classify(mixed, NOW_S).category is Is.UNKNOWN


class TestPlaces:
    def test_a_tool_meets_the_same_faults_as_tool_faults(self):
        def met(error):
            return describe("p", error, {"tool": "fetch"}, at=NOW_S).category

        assert met(status(429)) is met(status(503)) is Is.TOOL_TRANSIENT
        assert met(TimeoutError()) is Is.TOOL_TIMEOUT
        assert met(status(403)) is met(PermissionError()) is Is.TOOL_DENIED
        assert met(json.JSONDecodeError("m", "d", 0)) is Is.TOOL_ARGS
        assert met(ValueError()) is Is.TOOL_CRASH
        assert met(BudgetExceeded("m")) is Is.BUDGET

    def test_whatever_a_strategy_raises_is_the_strategys_fault(self):
        def met(error):
            return describe("p", error, {"strategy": "grep"}, at=NOW_S).category

        assert met(InternalError("m")) is met(status(401)) is met(ValueError()) is Is.STRATEGY
        assert met(BudgetExceeded("m")) is Is.BUDGET
        assert met(KeyboardInterrupt()) is Is.CANCELLED

    def test_a_caller_who_knows_better_decides(self):
        record = describe(
            "p", AssertionError(), {"category": Is.CHECK_FAILED, "tool": "pytest"}, at=NOW_S
        )
        assert record.category is Is.CHECK_FAILED

    def test_a_caller_who_knows_what_was_sent_decides_that(self):
        timeout = describe("p", TimeoutError(), {"sent": False}, at=NOW_S)
        refused = describe("p", ConnectionRefusedError(), {"sent": True}, at=NOW_S)
        assert (timeout.category, timeout.sent) == (Is.CONNECT, False)
        assert (refused.category, refused.sent) == (Is.READ_TIMEOUT, True)

    def test_what_was_sent_follows_from_the_fault(self):
        sent = [
            describe("p", error, {}, at=NOW_S).sent
            for error in (ConnectionRefusedError(), TimeoutError(), status(500), ValueError())
        ]
        assert sent == [False, True, True, None]

    def test_side_effects_are_unknown_once_a_tool_ran(self):
        assert describe("p", ValueError(), {}, at=1).side_effects is SideEffects.NONE
        assert (
            describe("p", ValueError(), {"tool": "run"}, at=1).side_effects is SideEffects.UNKNOWN
        )
        told = describe("p", ValueError(), {"tool": "x", "side_effects": SideEffects.NONE}, at=1)
        assert told.side_effects is SideEffects.NONE


class TestRecords:
    def test_a_record_tells_the_error_and_its_causes(self):
        error = caused(RuntimeError("node failed"), status(429, code="rate_limit_exceeded"))
        record = describe("p-1", error, {"node": "n", "provider": "openai"}, at=5.0, record_id="r")
        assert record.message == "node failed <- openai.APIStatusError: some text"
        assert record.exception_type == "RuntimeError"
        assert (record.status, record.provider_code) == (429, "rate_limit_exceeded")
        assert (record.node, record.provider, record.at, record.id) == ("n", "openai", 5.0, "r")

    def test_a_group_tells_its_members(self):
        record = describe("p", ExceptionGroup("two", [ValueError("a"), KeyError("b")]), {}, at=1)
        assert "ValueError: a <- KeyError: 'b'" in record.message

    def test_an_exception_that_cannot_be_shown_is_still_recorded(self):
        class Mute(Exception):  # noqa: N818  # its name is its point
            def __str__(self) -> str:
                raise RuntimeError

        assert describe("p", Mute(), {}, at=1).message == "<Mute cannot be shown>"

    @given(st.sampled_from(["message", "cause", "context", "group", "code", "hint"]))
    def test_a_planted_secret_survives_nowhere(self, where):
        secret = "sk-proj-" + "Zx9" * 12
        error: BaseException = RuntimeError("plain")
        hints = {}
        if where == "message":
            error = RuntimeError(f"key {secret} refused")
        elif where == "cause":
            error.__cause__ = ValueError(f"api_key={secret}")
        elif where == "context":
            error.__context__ = ValueError(secret)
        elif where == "group":
            error = ExceptionGroup("g", [ValueError(secret)])
        elif where == "code":
            error = status(401, code=secret)
        else:
            hints = {"model": secret, "node": secret}
        record = describe("p", error, hints, at=1)
        assert secret not in json.dumps(record.to_dict())
        assert secret.encode() not in pickle.dumps(record)


class TestFingerprints:
    def of(self, error: BaseException, **hints: object) -> str:
        return describe("p", error, hints, at=1).fingerprint

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("took 31.5 s", "took 7 s"),
            ("no file /srv/a/b.py", "no file /opt/c.py"),
            ("no file C:\\a\\b", "no file D:\\x"),
            ("request req_01AbC failed", "request req_99ZzZ failed"),
            ("bad key 'alpha'", "bad key 'beta gamma'"),
            ("object at 0x7fa0 of deadbeefcafe", "object at 0x12 of aaaabbbbcccc"),
            ("see https://a.example/x", "see https://b.example/y"),
            ("Line  one\ntwo", "line one two"),
        ],
    )
    def test_what_differs_between_two_times_does_not_count(self, first, second):
        assert self.of(ValueError(first)) == self.of(ValueError(second))

    def test_what_makes_another_fault_counts(self):
        same = ValueError("a")
        prints = {
            self.of(same),
            self.of(ValueError("b")),
            self.of(KeyError("a")),
            self.of(same, tool="grep"),
            self.of(same, provider="openai"),
            self.of(same, provider="openai", model="small"),
            self.of(same, category=Is.CHECK_FAILED),
        }
        assert len(prints) == 7

    def test_the_raising_function_is_the_place_when_nothing_else_is(self):
        def here():
            raise ValueError("a")

        def there():
            raise ValueError("a")

        caught = []
        for function in (here, there, here):
            try:
                function()
            except ValueError as error:
                caught.append(self.of(error))
        assert caught[0] == caught[2] != caught[1]

    def test_words_with_apostrophes_stay(self):
        assert normalised("can't open, won't retry") == "can't open, won't retry"

    def test_a_huge_message_is_normalised_in_no_time(self):
        assert len(normalised("z" * 10_000_000)) == 1_000
