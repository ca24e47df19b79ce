"""`cleveragents budget`: set, list and clear the limits that all processes on the store obey."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Any

from cleveragents.cli import output, state
from cleveragents.cli.arguments import amount_of, kind_of, name_of, shares_of
from cleveragents.cli.table import money_column, table
from cleveragents.domain.budget import Limit
from cleveragents.infrastructure.limits import limits_of, remove_limit, set_limit

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from cleveragents.infrastructure.transaction import Transaction


def set_budget(options: Namespace) -> int:
    """Put a budget in force and say what it replaced."""
    kind = kind_of(options.kind)
    limit = Limit(
        kind,
        amount_of(options.amount),
        name=name_of(kind, options.name),
        hard=not options.soft,
        warn_at=shares_of(options.warn_at),
    )
    with state.writing() as store:
        before = store.write(_replacing(limit, set_limit(limit, time.time())))
    return _tell_change(options, limit, limit, before)


def clear_budget(options: Namespace) -> int:
    """Lift a budget and say what it was."""
    kind = kind_of(options.kind)
    place = Limit(kind, 0, name=name_of(kind, options.name), hard=not options.soft)
    before = None
    if state.is_there():
        with state.writing() as store:
            before = store.write(_replacing(place, remove_limit(place, time.time())))
    if before is None:
        message = f"There is no {_hardness(place)} budget of {_whose(place)}; nothing was changed"
        return state.nothing(message, "Run `cleveragents budget list` to see all")
    return _tell_change(options, place, None, before)


def list_budgets(options: Namespace) -> int:
    """Print the budgets in force."""
    with state.reading() as connection:
        limits = () if connection is None else limits_of(connection)
    if not limits:
        return state.nothing(
            "No budgets yet", "Run `cleveragents budget set day 5` to limit each day to 5.00 USD"
        )
    if options.json:
        for limit in limits:
            output.record({"kind": "budget", **_as_record(limit)})
        return 0
    amounts = money_column([one.amount for one in limits], absent="")
    rows = [
        (one.kind, one.name or "each", amount, _hardness(one), _shares(one, " "))
        for one, amount in zip(limits, amounts, strict=True)
    ]
    output.data(table(("kind", "name", "amount", "", "warns at"), rows, right=("amount",)))
    return 0


def _replacing(
    limit: Limit, change: Callable[[Transaction], object]
) -> Callable[[Transaction], Limit | None]:
    """Do a change and return what stood in its place, in one transaction."""

    def write(tx: Transaction) -> Limit | None:
        place = _place(limit)
        before = next((one for one in limits_of(tx) if _place(one) == place), None)
        change(tx)
        return before

    return write


def _place(limit: Limit) -> tuple[str, str | None, bool]:
    return limit.kind, limit.name, limit.hard


def _tell_change(options: Namespace, place: Limit, now: Limit | None, before: Limit | None) -> int:
    undo = _undo(place, before)
    if options.json:
        output.record(
            {
                "kind": "budget",
                "now": None if now is None else _as_record(now),
                "before": None if before is None else _as_record(before),
                "undo": undo,
            }
        )
        return 0
    facts = output.facts({"now": _described(now), "before": _described(before)})
    output.data(f"{_hardness(place)} budget of {_whose(place)}\n{facts}")
    output.talk(f"\nhint: Run `{undo}` to undo this")
    return 0


def _undo(place: Limit, before: Limit | None) -> str:
    words = ["cleveragents", "budget", "clear" if before is None else "set", place.kind]
    if before is not None:
        words.append(f"{before.amount.usd:f}")
        # A soft budget warns by default, so that one without warnings has to say it.
        if before.warn_at or not before.hard:
            words += ["--warn-at", _shares(before, ",")]
    if place.name is not None:
        words += ["--name", place.name]
    return shlex.join([*words, *([] if place.hard else ["--soft"])])


def _as_record(limit: Limit) -> dict[str, Any]:
    return {
        "of": limit.kind,
        "name": limit.name,
        "amount_usd": f"{limit.amount.usd:f}",
        "hard": limit.hard,
        "warn_at": limit.warn_at,
    }


def _described(limit: Limit | None) -> str:
    if limit is None:
        return "none"
    return f"{limit.amount}{', warns at ' + _shares(limit, ' ') if limit.warn_at else ''}"


def _whose(limit: Limit) -> str:
    return f"each {limit.kind}" if limit.name is None else f"{limit.kind} `{limit.name}`"


def _hardness(limit: Limit) -> str:
    return "hard" if limit.hard else "soft"


def _shares(limit: Limit, joint: str) -> str:
    return joint.join(map(str, limit.warn_at))
