from __future__ import annotations

from types import SimpleNamespace

import pytest

from cleveragents.application.services.error_evidence import (
    Evidence,
    evidence_of,
    peek,
    retry_after_s,
)

NOW_S = 1_000.0


class Carrier(Exception):  # noqa: N818  # carries whatever a test hangs on it
    def __init__(self, **attributes: object) -> None:
        super().__init__("text")
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"RETRY-AFTER": 3}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:17:10 GMT"}, 30.0),
        ({"Retry-After": "Thu Jan  1 00:17:10 1970"}, 30.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "next week"}, None),
        ({"Retry-After": 10**400}, None),
        ({}, None),
        (None, None),
        (SimpleNamespace(items=lambda: 1 / 0), None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers, expected):
    assert retry_after_s(headers, NOW_S) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Carrier(retry_after=4), 4.0),
        (Carrier(facts={"retry_after_s": 5}), 5.0),
        (Carrier(response=SimpleNamespace(headers={"retry-after": "6"})), 6.0),
        (Carrier(headers={"retry-after": "7"}), 7.0),
        (Carrier(response={"ResponseMetadata": {"HTTPHeaders": {"retry-after": "8"}}}), 8.0),
        (Carrier(details={"error": {"details": [{"retryDelay": "9.5s"}]}}), 9.5),
        (Carrier(details={"error": {"details": [{"retryDelay": "later"}, {}]}}), None),
        (Carrier(), None),
    ],
)
def test_the_wait_is_found_wherever_a_provider_puts_it(error, expected):
    assert evidence_of(error, NOW_S).retry_after_s == expected


@pytest.mark.parametrize(
    "error",
    [
        Carrier(status_code=429),
        Carrier(response=SimpleNamespace(status_code=429)),
        Carrier(response=SimpleNamespace(status=429)),
        Carrier(response={"ResponseMetadata": {"HTTPStatusCode": 429}}),
        Carrier(status=429),
        Carrier(code=429),
    ],
)
def test_the_status_is_found_under_all_its_names(error):
    assert evidence_of(error, NOW_S).status == 429


@pytest.mark.parametrize("value", ["429", True, 42, 4_290, None])
def test_what_is_no_status_is_not_taken_for_one(value):
    assert evidence_of(Carrier(status_code=value), NOW_S).status is None


@pytest.mark.parametrize(
    ("error", "codes"),
    [
        (Carrier(body={"error": {"code": "a", "type": "b"}}), ("a", "b")),
        (Carrier(body={"code": "a"}), ("a",)),
        (Carrier(body='{"error": {"code": "a"}}'), ("a",)),
        (Carrier(body="[]"), ()),
        (Carrier(body="{broken"), ()),
        (Carrier(body="plain text"), ()),
        (Carrier(body=["?"]), ()),
        (Carrier(provider_error_code="a", provider_error_type="b"), ("a", "b")),
        (
            Carrier(body={"error": {"code": "content_filter", "innererror": {"code": "x"}}}),
            ("x", "content_filter"),
        ),
        (Carrier(code="x" * 101), ()),
        (Carrier(response=SimpleNamespace(is_closed=True, text='{"code": "a"}')), ("a",)),
        (Carrier(response=SimpleNamespace(_content_consumed=True, text='{"code": "a"}')), ("a",)),
        (Carrier(response=SimpleNamespace(is_closed=False, text='{"code": "a"}')), ()),
        (Carrier(response=SimpleNamespace(is_closed=True, text="x" * 70_000)), ()),
    ],
)
def test_codes_are_read_from_the_special_to_the_general(error, codes):
    assert evidence_of(error, NOW_S).codes == codes


def test_an_unread_body_stays_unread():
    """Reading it could wait for a network, inside a handler of an error."""

    class Streaming:
        is_closed = False

        @property
        def text(self) -> str:
            raise AssertionError("read")

    assert evidence_of(Carrier(response=Streaming()), NOW_S).codes == ()


def test_an_attribute_that_raises_is_not_there():
    class Hostile(Exception):  # noqa: N818  # see Carrier
        @property
        def response(self) -> object:
            raise RuntimeError

    assert peek(Hostile(), "response") is None
    assert evidence_of(Hostile(), NOW_S).status is None


def test_a_body_that_raises_shows_nothing_and_hides_nothing():
    class Hostile(dict):
        def get(self, *_):
            raise RuntimeError

    assert evidence_of(Carrier(body=Hostile()), NOW_S) == Evidence()
