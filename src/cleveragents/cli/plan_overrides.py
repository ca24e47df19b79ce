"""What a command line changes in a plan: the rules are those of the plan file itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan import PLAN, Plan
from cleveragents.domain.plan_rules import Findings
from cleveragents.infrastructure.plan_files.yaml_source import NotReadable, read_yaml

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

_SET: Final = "Write `--set at_once=4` or `--set nodes.NAME.timeout_s=30`"


def overridden(plan: Plan, options: Namespace) -> Plan:
    """Return the plan with what the options say instead; CA1101 when that breaks a rule."""
    changes = [*_changes(options)]
    if not changes:
        return plan
    plain = PLAN.plain(plan)
    for path, value in changes:
        _put(plain, path, value)
    found = Findings()
    fresh = PLAN.read(plain, (), found)
    found.raise_if_any("plan")
    assert isinstance(fresh, Plan)
    return fresh


def _changes(options: Namespace) -> Iterator[tuple[str, Any]]:
    """Yield places and values; what was named by `--set` comes first, so that a flag wins."""
    for text in options.set or ():
        path, equals, value = text.partition("=")
        if not (path and equals):
            raise RequestError(f"`--set` must be NAME=VALUE, got {text!r}", hint=_SET)
        try:
            yield path, read_yaml(value).data
        except NotReadable as error:
            raise RequestError(f"`--set {path}` has no value: {error.says}", hint=_SET) from None
    flags = {
        "at_once": options.at_once,
        "budget.max_usd": options.budget_usd_max,
        "deadline_s": options.deadline,
        "on_failure": options.on_failure,
        "apply": options.apply,
    }
    yield from ((path, value) for path, value in flags.items() if value is not None)


def _put(plain: dict[str, Any], path: str, value: Any) -> None:
    """Put a value where the path leads; the names of nodes may hold dots themselves."""
    place: Any = plain
    rest = path
    if path.startswith("nodes."):
        rest = path.removeprefix("nodes.")
        names = [name for name in plain["nodes"] if rest.startswith(f"{name}.")]
        if not names:
            raise RequestError(f"`--set {path}` names no node of the plan", hint=_SET)
        name = max(names, key=len)
        place, rest = plain["nodes"][name], rest.removeprefix(f"{name}.")
    *parts, last = rest.split(".")
    for part in parts:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise RequestError(f"`--set {path}` leads through `{part}`, which has no parts")
    place[last] = value
