"""What is known about the bill of a call that failed: in doubt, nothing."""

from __future__ import annotations

import pickle

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelHTTPError,
    ModelOverloadedError,
    UserError,
)

from cleveragents.domain.usage import Usage
from cleveragents.providers.model_access.billing import CallFailed, billed_after, ended, is_whole


class Stream:
    """As much of a streamed response as tells how far it came."""

    def __init__(self, usage, finish_reason=None, provider_details=None):
        self.usage = usage
        self.finish_reason = finish_reason
        self.provider_details = provider_details


def http(status, **options):
    return ModelHTTPError(status, "it", **options)


@pytest.mark.parametrize(
    ("error", "billed"),
    [
        (http(429), "no"),
        (http(413), "no"),
        (http(529), "no"),
        (http(408), "unknown"),
        (http(500), "unknown"),
        (http(503), "unknown"),
        (http(429, in_stream=True), "unknown"),
        (ModelOverloadedError("it", "busy"), "no"),
        (ModelOverloadedError("it", "busy", in_stream=True), "unknown"),
        (ModelConnectionError("it", "refused", phase="connect"), "no"),
        (ModelConnectionError("it", "no free connection", phase="pool"), "no"),
        (ModelConnectionError("it", "reset", phase="write"), "unknown"),
        (ModelConnectionError("it", "reset", phase="read"), "unknown"),
        (ModelConnectionError("it", "lost"), "unknown"),
        (UserError("this cannot be sent"), "no"),
        (KeyError("surprise"), "unknown"),
    ],
    ids=lambda one: one if isinstance(one, str) else str(one)[:40],
)
def test_only_a_refusal_before_any_work_is_free(error, billed):
    assert billed_after(error, None) == billed


def test_after_a_stream_began_a_bill_is_known_only_if_it_was_told_to_the_end():
    from pydantic_ai.usage import RequestUsage

    used = RequestUsage(input_tokens=5, output_tokens=2)
    whole = Stream(used, "stop", {"finish_reason": "stop"})
    assert billed_after(KeyError("late"), whole) == "known"
    assert billed_after(http(429), Stream(used)) == "unknown"
    assert not is_whole(Stream(RequestUsage(), "stop", whole.provider_details))
    unmeasured = RequestUsage(output_tokens=1, unmeasured_requests=1)
    assert not is_whole(Stream(unmeasured, "stop", whole.provider_details))


def test_an_ending_in_a_word_that_nobody_knows_is_an_ending():
    assert ended(Stream(None, provider_details={"finish_reason": "eos_token"}))
    assert ended(Stream(None, "content_filter"))


def test_a_reason_that_the_provider_did_not_give_is_no_ending():
    assert not ended(Stream(None, "stop", {"finish_reason": None}))
    assert not ended(Stream(None, "stop"))


def test_a_failed_call_survives_pickling_with_its_error_and_usage():
    failed = CallFailed(http(429), Usage(input_tokens=3), "unknown")
    again = pickle.loads(pickle.dumps(failed))
    assert (again.code, again.billed, again.usage_so_far) == (
        "CA3110",
        "unknown",
        failed.usage_so_far,
    )
    assert again.error.status_code == again.__cause__.status_code == 429
    assert again.message == "A call of a model failed with `ModelHTTPError`"
    assert again.facts == {"billed": "unknown"}
