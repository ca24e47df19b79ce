"""What an exception of anybody shows about itself: status, provider codes, Retry-After.

Foreign exceptions are looked at by attribute, never imported, and an attribute that raises is
an attribute that is not there. Nothing here waits for a network: a body not yet read stays unread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.error_record import is_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

_BODY_CHARS_MAX: Final = 65_536
_CODE_CHARS_MAX: Final = 100
# Of lists and headers no more than this is looked at: nobody sends more, but anybody could.
_ITEMS_MAX: Final = 200
_GOOGLE_DELAY: Final = re.compile(r"(\d+(?:\.\d+)?)s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The structured facts of one exception; `codes` go from the special to the general."""

    status: int | None = None
    codes: tuple[str, ...] = ()
    retry_after_s: float | None = None
    #: The provider's own sentence; it may refine what the facts say, never decide alone.
    sentence: str = ""


def evidence_of(error: BaseException, now_s: float) -> Evidence:
    """Collect what one exception shows, without looking at its causes; this never raises."""
    try:
        return _collected(error, now_s)
    except Exception:  # noqa: BLE001  # a stranger's mapping may raise anything; the error is kept
        return Evidence()


def _collected(error: BaseException, now_s: float) -> Evidence:
    response = peek(error, "response")
    body = _error_object(_body_of(error, response))
    details = tuple(_details_of(body))
    sentence = body.get("message") or body.get("Message")
    return Evidence(
        status=_status_of(error, response),
        codes=tuple(dict.fromkeys(_codes_of(error, body, details))),
        retry_after_s=_retry_after_s(error, response, details, now_s),
        sentence=sentence[:_BODY_CHARS_MAX] if isinstance(sentence, str) else "",
    )


def peek(thing: object, name: str) -> Any:
    """Read an attribute of a foreign object; one that raises is not there."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001  # a property of a stranger may raise anything
        return None


def retry_after_s(headers: object, now_s: float) -> float | None:
    """Return the wait that headers ask for: `retry-after-ms`, or `Retry-After` (seconds, date)."""
    named = _lowered(headers)
    milliseconds = _number(named.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = named.get("retry-after")
    seconds = _number(asked)
    return seconds if seconds is not None else _until_date_s(asked, now_s)


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, str | int | float) else -1.0
    except (ValueError, OverflowError):
        return None
    return number if is_seconds(number) else None


def _until_date_s(value: object, now_s: float) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        moment = parsedate_to_datetime(value)
        # A date without a zone is UTC (RFC 9110).
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max(0.0, aware.timestamp() - now_s)
    except (ValueError, OverflowError):
        return None


def _lowered(headers: object) -> dict[str, Any]:
    try:
        pairs = headers.items() if hasattr(headers, "items") else ()
        return {str(name).lower(): value for name, value in islice(pairs, _ITEMS_MAX)}
    except Exception:  # noqa: BLE001  # headers of a stranger may raise anything
        return {}


def _status_of(error: BaseException, response: object) -> int | None:
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    in_metadata = metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None
    for value in (
        peek(error, "status_code"),
        peek(response, "status_code"),
        peek(response, "status"),
        in_metadata,
        peek(error, "status"),
        # urllib and google.genai call the status `code`; elsewhere `code` is a text.
        peek(error, "code"),
    ):
        if type(value) is int and 100 <= value <= 599:
            return value
    return None


def _body_of(error: BaseException, response: object) -> object:
    """Find the answer's body where an SDK keeps it; a response is asked only if it was read."""
    for value in (peek(error, "body"), peek(error, "details"), response):
        if isinstance(value, Mapping | list):
            return value
        if isinstance(value, str) and value[:1] in "{[":
            return _parsed(value)
    if peek(response, "is_closed") or peek(response, "_content_consumed"):
        return _parsed(peek(response, "text"))
    return None


def _parsed(text: object) -> object:
    if not isinstance(text, str) or len(text) > _BODY_CHARS_MAX:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _error_object(body: object) -> Mapping[str, Any]:
    """Unwrap `{"error": {…}}` (OpenAI, Anthropic, Google) and `{"Error": {…}}` (AWS)."""
    if isinstance(body, list):
        body = body[0] if body else None
    if not isinstance(body, Mapping):
        return {}
    for name in ("error", "Error"):
        inner = body.get(name)
        if isinstance(inner, Mapping):
            return inner
    return body


def _details_of(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Walk the typed details: a list at Google, one object at Anthropic and Azure."""
    for name in ("details", "innererror"):
        found = body.get(name)
        for detail in islice(found, _ITEMS_MAX) if isinstance(found, list) else (found,):
            if isinstance(detail, Mapping):
                yield detail


def _codes_of(
    error: BaseException, body: Mapping[str, Any], details: tuple[Mapping[str, Any], ...]
) -> Iterator[str]:
    for detail in details:
        yield from _texts(detail.get("error_code"), detail.get("reason"), detail.get("code"))
        violations = detail.get("violations")
        for violation in islice(violations, _ITEMS_MAX) if isinstance(violations, list) else ():
            if isinstance(violation, Mapping) and "PerDay" in str(violation.get("quotaId")):
                yield "daily_quota_exhausted"
    metadata = body.get("metadata")
    if isinstance(metadata, Mapping) and (metadata.get("flagged_input") or metadata.get("reasons")):
        # OpenRouter's moderation has no code of its own: HTTP 403, as for a key.
        yield "moderation_blocked"
    yield from _texts(peek(error, "provider_error_code"), peek(error, "error_code"))
    yield from _texts(body.get("code"), body.get("Code"), peek(error, "code"))
    yield from _texts(body.get("status"), peek(error, "status"))
    yield from _texts(peek(error, "provider_error_type"), body.get("type"), peek(error, "type"))


def _texts(*values: object) -> Iterator[str]:
    # `str.__str__` gives a plain text also for one of a stranger's own class.
    texts = (str.__str__(value) for value in values if isinstance(value, str))
    return (text for text in texts if 0 < len(text) <= _CODE_CHARS_MAX)


def _retry_after_s(
    error: BaseException, response: object, details: tuple[Mapping[str, Any], ...], now_s: float
) -> float | None:
    facts = peek(error, "facts")
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    headers = metadata.get("HTTPHeaders") if isinstance(metadata, Mapping) else None
    asked = (
        _number(peek(error, "retry_after")),
        _number(facts.get("retry_after_s")) if isinstance(facts, Mapping) else None,
        retry_after_s(peek(response, "headers"), now_s),
        retry_after_s(peek(error, "headers"), now_s),
        retry_after_s(headers, now_s),
        *(_google_delay_s(detail) for detail in details),
    )
    return next((seconds for seconds in asked if seconds is not None), None)


def _google_delay_s(detail: Mapping[str, Any]) -> float | None:
    delay = detail.get("retryDelay")
    match = _GOOGLE_DELAY.fullmatch(delay) if isinstance(delay, str) else None
    return _number(match[1]) if match else None
