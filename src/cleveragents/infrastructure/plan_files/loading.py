"""Load a plan file: all its mistakes are told together, each with file, line and column."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan import PLAN, Plan
from cleveragents.domain.plan_rules import Findings, TooMany, refusal
from cleveragents.infrastructure.plan_files.yaml_source import (
    SIZE_BYTES_MAX,
    NotReadable,
    read_yaml,
    text_of,
)

if TYPE_CHECKING:
    from os import PathLike

    from cleveragents.infrastructure.plan_files.yaml_source import Spot


@dataclass(frozen=True, slots=True)
class LoadedPlan:
    """A plan with the text that it came from; the digest is the SHA-256 of the file's bytes."""

    plan: Plan
    text: str
    digest: str


def load_plan(path: str | PathLike[str]) -> LoadedPlan:
    """Read a plan file, or refuse it with CA1101 and every mistake in it."""
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            # One byte more than allowed says that the file is too large, however large it is.
            raw = file.read(SIZE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RequestError(
            f"The plan file `{name}` cannot be read: {why}", code="CA1101", facts={"file": name}
        ) from None
    try:
        text = text_of(raw)
    except NotReadable as error:
        raise _refused(name, [(error.spot, error.says)]) from None
    return LoadedPlan(parse_plan(text, name), text, hashlib.sha256(raw).hexdigest())


def parse_plan(text: str, name: str = "plan.yaml") -> Plan:
    """Read a plan from text, or refuse it with CA1101; `name` stands for the file in mistakes."""
    try:
        source = read_yaml(text)
    except NotReadable as error:
        raise _refused(name, [(error.spot, error.says)]) from None
    found = Findings()
    plan = None
    with suppress(TooMany):
        plan = PLAN.read(source.data, (), found)
    told = [(source.spot(one.at, on_key=one.on_key), one.says) for one in found.mistakes]
    told += source.twice
    if told:
        raise _refused(name, told)
    assert isinstance(plan, Plan)
    return plan


def _refused(name: str, told: list[tuple[Spot, str]]) -> RequestError:
    # Sorted by place alone: mistakes of one place keep the order in which they were found.
    placed = sorted(told, key=lambda one: one[0])
    return refusal(
        f"Plan file `{name}`",
        [(f"{name}:{line}:{column}", says) for (line, column), says in placed],
    )
