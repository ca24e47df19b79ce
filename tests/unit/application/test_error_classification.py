"""Every fault is recognised by what it is, never by what it says."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import json
import pickle
import socket
import ssl
import subprocess
import time
import urllib.error
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.application.services.error_classification import (
    Hints,
    classify,
    describe,
    normalised,
)
from cleveragents.domain.error_record import MESSAGE_CHARS_MAX, ErrorRecord, SideEffects
from cleveragents.domain.error_record import ErrorCategory as Is
from cleveragents.domain.errors import (
    BudgetExceeded,
    CircuitOpen,
    InternalError,
    PlanError,
    ProviderError,
    RequestError,
    SetupError,
)
from cleveragents.domain.redaction import SEARCHED_CHARS_MAX
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
    # As `raise … from …` does it, also where a class hides the attribute.
    vars(BaseException)["__cause__"].__set__(error, cause)
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
    "openai flagged prompt": (status(400, code="invalid_prompt"), Is.CONTENT_FILTER),
    "openai image in a stream": (
        foreign("pydantic_ai.exceptions.ModelAPIError", provider_error_code="image_parse_error"),
        Is.BAD_REQUEST,
    ),
    "openrouter moderation": (status(403, metadata={"reasons": ["x"]}), Is.CONTENT_FILTER),
    "openrouter other metadata": (status(403, metadata={"provider_name": "x"}), Is.AUTH),
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
    "pydantic-ai server": (foreign("pydantic_ai.exceptions.ModelServerError"), Is.OVERLOADED),
    "pydantic-ai gateway": (
        foreign("pydantic_ai.exceptions.ModelServerError", status_code=504),
        Is.READ_TIMEOUT,
    ),
    "pydantic-ai broken stream": (
        foreign("pydantic_ai.exceptions.ModelAPIError"),
        Is.READ_TIMEOUT,
    ),
    "pydantic-ai no JSON": (
        caused(foreign("pydantic_ai.exceptions.ModelAPIError"), json.JSONDecodeError("m", "d", 0)),
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
        ("input length and `max_tokens` exceed context limit: 9 + 9 > 10", Is.CONTEXT_OVERFLOW),
        ("Request payload size exceeds the limit: 9 bytes", Is.CONTEXT_OVERFLOW),
        ("Output blocked by content filtering policy", Is.CONTENT_FILTER),
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


def nested(error: BaseException, depth: int) -> BaseException:
    for _ in range(depth):
        error = BaseExceptionGroup("nested", [error])
    return error


def hostile(*names: str) -> BaseException:
    """An exception whose attributes of these names raise, be they methods or properties."""

    def refuse(*_):
        raise RuntimeError("leave me alone")

    shown = {
        name: refuse if name in {"__str__", "__bool__"} else property(refuse) for name in names
    }
    return type("Hostile", (Exception,), shown)()


def circle(*errors: BaseException) -> BaseException:
    for error, cause in zip(errors, (*errors[1:], errors[0]), strict=True):
        caused(error, cause)
    return errors[0]


def group_in_a_circle() -> BaseException:
    member = ValueError("member")
    member.__cause__ = ExceptionGroup("around", [member, member])
    return member


class Word(str):
    """A text of a stranger: every method that one may want raises."""

    __slots__ = ()

    def _refuse(self, *_):
        raise RuntimeError("leave me alone")

    __str__ = __format__ = __getitem__ = __len__ = lower = _refuse


class Wordy(Exception):  # noqa: N818  # see Word
    code = Word("insufficient_quota")

    def __str__(self) -> str:
        return Word("told by a stranger")


ATTRIBUTES = (
    *("__str__", "__bool__", "__cause__", "__context__", "__suppress_context__", "__traceback__"),
    *("response", "body", "code", "status_code", "facts", "headers", "reason"),
)
odd_errors = st.recursive(
    st.one_of(
        st.text(max_size=50).map(ValueError),
        st.sets(st.sampled_from(ATTRIBUTES)).map(lambda names: hostile(*names)),
        st.sampled_from(["code", "body", "details", "headers", "response", "retry_after"]).flatmap(
            lambda name: st.recursive(
                st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.binary()),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                max_leaves=5,
            ).map(lambda value: foreign("openai.APIError", **{name: value}))
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda them: BaseExceptionGroup("g", them)),
        st.tuples(inner, inner).map(lambda two: caused(*two)),
        st.lists(inner, min_size=1, max_size=3, unique_by=id).map(lambda them: circle(*them)),
    ),
    max_leaves=6,
)


# Made late: a runner of tests shows its parameters, and some of these cannot be shown.
STRANGERS = {
    "deep": lambda: nested(ValueError("deep"), 3_000),
    "wide": lambda: BaseExceptionGroup(
        "wide", [nested(ValueError(str(n)), 20) for n in range(2_000)]
    ),
    "circle": group_in_a_circle,
    "raising": lambda: hostile(*ATTRIBUTES, "__class__"),
    "no module": lambda: type("Lost", (Exception,), {"__module__": None})("m"),
    "endless group": lambda: type(
        "Group", (ExceptionGroup,), {"exceptions": itertools.repeat(ValueError())}
    )("g", [ValueError()]),
    "endless headers": lambda: foreign(
        "a.B", headers=SimpleNamespace(items=lambda: itertools.repeat(("a", "b")))
    ),
    "many details": lambda: foreign(
        "a.B", details=body(details=[{"violations": [{}] * 100_000}] * 100)
    ),
    "huge": lambda: RuntimeError("x" * 10_000_000),
    "huge members": lambda: ExceptionGroup(
        "huge", [RuntimeError("sk-" * 1_000_000) for _ in range(10)]
    ),
}


class TestStrangers:
    """An error handler that raises loses the error: nothing an exception does may stop it."""

    @given(odd_errors)
    def test_no_exception_stops_its_own_record(self, error):
        record = describe("p", error, {}, at=NOW_S)
        assert isinstance(record.category, Is)
        assert len(record.message) <= MESSAGE_CHARS_MAX
        assert ErrorRecord.from_dict(record.to_dict()) == record

    @pytest.mark.parametrize("make", STRANGERS.values(), ids=STRANGERS.keys())
    def test_depth_breadth_and_size_are_bounded(self, make):
        error = make()
        started_s = time.thread_time()
        record = describe("p", error, {}, at=NOW_S)
        assert time.thread_time() - started_s < 2.0
        assert record.category is Is.UNKNOWN
        assert record.message

    def test_an_error_that_is_met_with_no_room_on_the_stack_is_still_described(self):
        error = nested(status(429), 10)

        def dive() -> object:
            try:
                return dive()
            except RecursionError:
                return classify(error, NOW_S).category

        assert dive() in {Is.RATE_LIMIT, Is.UNKNOWN}

    def test_what_stands_near_in_a_deep_group_still_tells(self):
        assert classify(nested(status(429), 10), NOW_S).category is Is.RATE_LIMIT
        wide = ExceptionGroup("wide", [ValueError()] * 200 + [BudgetExceeded("m")])
        assert classify(wide, NOW_S).category is Is.BUDGET

    def test_a_cause_that_counts_as_false_is_still_the_cause(self):
        empty = type("Empty", (ConnectionRefusedError,), {"__len__": lambda _: 0})()
        assert classify(caused(RuntimeError(), empty), NOW_S).category is Is.CONNECT

    def test_a_strangers_text_is_kept_as_plain_text(self):
        record = describe("p", Wordy(), {}, at=NOW_S)
        assert (record.category, record.message) == (Is.QUOTA, "told by a stranger")
        assert type(record.message) is type(record.provider_code) is str

    def test_half_a_secret_in_a_huge_message_goes(self):
        text = "x " * (SEARCHED_CHARS_MAX // 2 - 3) + "sk-" + "a1" * 20
        assert "sk-" not in describe("p", RuntimeError(text[-65_000:] * 3), {}, at=1).message

    def test_ctrl_c_is_never_swallowed(self):
        class Interrupted(Exception):  # noqa: N818  # see Carrier
            def __str__(self) -> str:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            describe("p", Interrupted(), {}, at=NOW_S)


class TestHints:
    def test_a_text_that_is_a_category_is_taken_as_one(self):
        hints = {"category": "llm.rate_limit", "side_effects": "none", "tool": "run"}
        record = describe("p", ValueError(), hints, at=NOW_S)
        assert record.category is Is.RATE_LIMIT
        assert record.side_effects is SideEffects.NONE

    @pytest.mark.parametrize(
        ("hint", "value"),
        [
            *(("category", value) for value in ("nonsense", 7, ["llm.rate_limit"])),
            *(("side_effects", value) for value in ("some", True)),
            *((name, 7) for name in ("node", "actor", "provider", "model", "tool", "strategy")),
            *(("attempt", value) for value in ("1", True, 1.5, -1)),
            *((name, value) for name in ("sent", "idempotent") for value in (1, "yes")),
        ],
    )
    def test_a_hint_that_would_break_later_is_refused_now(self, hint, value):
        with pytest.raises(RequestError) as caught:
            describe("p", ValueError(), {hint: value}, at=NOW_S)
        assert f"`{hint}` must be" in caught.value.message
        assert repr(value) in caught.value.message
        assert caught.value.hint

    def test_a_hint_that_is_none_is_not_told(self):
        hints = dict.fromkeys(Hints.__annotations__)
        assert describe("p", ValueError(), hints, at=1) == describe("p", ValueError(), {}, at=1)
