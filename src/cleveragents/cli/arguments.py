"""What people type, turned into values or refused with the rule, the value and the way out."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, cast

from cleveragents.domain.budget import SCOPE_KINDS
from cleveragents.domain.errors import RequestError
from cleveragents.domain.money import Money

if TYPE_CHECKING:
    from datetime import tzinfo

    from cleveragents.domain.budget import ScopeKind


def kind_of(text: str) -> ScopeKind:
    """Return the kind of a scope."""
    if text in SCOPE_KINDS:
        return cast("ScopeKind", text)
    import difflib

    close = difflib.get_close_matches(text, SCOPE_KINDS, 1)
    raise RequestError(
        f"KIND must be one of {', '.join(SCOPE_KINDS)}, got {text!r}",
        hint=f"Did you mean `{close[0]}`?" if close else None,
    )


def name_of(kind: ScopeKind, text: str | None) -> str | None:
    """Return the name of a scope; that of a window must be a date that can come."""
    forms = {"day": ("2026-11-15", "%Y-%m-%d", ""), "month": ("2026-11", "%Y-%m", "-01")}
    if text is None or kind not in forms:
        return text
    example, form, rest = forms[kind]
    try:
        if f"{date.fromisoformat(text + rest):{form}}" == text:
            return text
    except ValueError:
        pass
    raise RequestError(
        f"The name of a {kind} must be a date such as {example}, got {text!r}",
        hint=f"Leave `--name` out for a budget of each {kind}",
    )


def amount_of(text: str) -> Money:
    """Return an amount of money."""
    try:
        return Money.of(text)
    except RequestError as error:
        error.hint = "Write a number of USD such as 5 or 0.25"
        raise


def shares_of(text: str | None) -> tuple[float, ...] | None:
    """Return the shares of a budget that are warned at; None leaves them to the budget."""
    if text is None:
        return None
    try:
        shares = tuple(float(share) for share in text.split(",") if share.strip())
    except ValueError:
        shares = (0.0,)
    if all(0 < share <= 1 for share in shares):
        return shares
    raise RequestError(
        f"`--warn-at` must be shares above 0 up to 1, got {text!r}",
        hint="Write `--warn-at 0.5,0.8` to be warned at 50 % and at 80 %",
    )


def moment_of(option: str, text: str | None, zone: tzinfo) -> float | None:
    """Return a moment in seconds; a date is its first one, and for `--until` the next day's."""
    if text is None:
        return None
    try:
        try:
            day = date.fromisoformat(text) + timedelta(days=option == "--until")
            moment = datetime.combine(day, time.min)
        except ValueError:
            moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        raise RequestError(
            f"`{option}` must be a date, or a date and a time, got {text!r}",
            hint=f"Write `{option} 2026-11-15` or `{option} 2026-11-15T09:30`",
        ) from None


def count_of(option: str, number: int | None) -> int | None:
    """Return how many at most; None is all."""
    if number is not None and number < 1:
        raise RequestError(f"`{option}` must be a whole number from 1, got {number}")
    return number
