"""The parts of plans and nodes: budgets, fan-out, context, recovery, and words that both share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.budget import SCOPE_KINDS, Limit
from cleveragents.domain.conditions import Template
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.plan_actors import TIMEOUT_S_MAX
from cleveragents.domain.plan_collections import FrozenMap, Listed, Literal, Mapped
from cleveragents.domain.plan_graph import ITEMS_MAX
from cleveragents.domain.plan_records import PlanValue, Record, spec
from cleveragents.domain.plan_rules import (
    ANY_TEXT,
    At,
    Choice,
    Dollars,
    Findings,
    Flag,
    JsonSchema,
    Number,
    Templated,
    Text,
    TreePath,
)

if TYPE_CHECKING:
    from cleveragents.domain.budget import ScopeKind
    from cleveragents.domain.money import Money

# `nodes.NAME.output` ends a name at `output`, so no later part of a name may be that word.
NAME: Final = Text(
    "a name of small letters, digits, `.`, `_` and `-`, at most 100, without a part `.output`",
    chars_max=100,
    pattern=r"^(?!.*\.output(\.|$))[a-z0-9][a-z0-9._-]*$",
)
WORD: Final = Text(
    "a word of letters, digits and `_`", chars_max=100, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"
)
KEY: Final = Text(
    "a key of letters, digits, `_` and `-`", chars_max=100, pattern=r"^[A-Za-z0-9_-]+$"
)
_ITEM_NAME: Final = Text(
    "a word that means nothing else here",
    chars_max=100,
    pattern=r"^(?!(nodes|inputs|plan|and|or|not|in|true|false|null)$)[A-Za-z_][A-Za-z0-9_]*$",
)
ENV: Final = Mapped(
    WORD,
    Templated("text in quotes, without NUL", chars_max=100_000, pattern=ANY_TEXT, private=True),
    "names of variables to texts",
)
TIMEOUT: Final = Number(0, TIMEOUT_S_MAX, "seconds")
ATTEMPTS: Final = Number(1, 100, whole=True)


class OnFailure(StrEnum):
    """What the failure of a node means for the rest of the plan."""

    STOP = "stop"
    CONTINUE = "continue"


class ApplyMode(StrEnum):
    """Whether the changes of a finished plan go into the user's tree."""

    ASK = "ask"
    AUTO = "auto"
    NEVER = "never"


class Capture(StrEnum):
    """What the text that an actor prints is, as an output."""

    TEXT = "text"
    LINES = "lines"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimit(PlanValue):
    """A limit for one scope, or for each scope of a kind."""

    kind: ScopeKind = spec(Choice(SCOPE_KINDS), "what is limited")
    max_usd: Money = spec(Dollars(), "the amount, in USD")
    name: str | None = spec(Text("a name", chars_max=200), "which one; each one by default", None)
    hard: bool = spec(Flag(), "refuse what could exceed it; false only warns", True)
    warn_at: tuple[float, ...] | None = spec(
        Listed(Number(0, 1), "shares above 0 up to 1"), "shares at which to warn", None
    )

    def limit(self) -> Limit:
        """Return the limit as the books know it."""
        return Limit(self.kind, self.max_usd, name=self.name, hard=self.hard, warn_at=self.warn_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(PlanValue):
    """What a plan may spend; a call that could exceed it is not made."""

    max_usd: Money | None = spec(Dollars(), "what the whole plan may spend, in USD", None)
    limits: tuple[BudgetLimit, ...] = spec(
        Listed(Record(BudgetLimit), "limits"), "further limits, such as for each actor or model", ()
    )

    def limits_of(self, plan_id: str) -> tuple[Limit, ...]:
        """Return all limits as the books know them, the plan's own first."""
        own = () if self.max_usd is None else (Limit("plan", self.max_usd, name=plan_id),)
        return (*own, *(one.limit() for one in self.limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBudget(PlanValue):
    """What one node may spend, all its attempts together."""

    max_usd: Money = spec(Dollars(), "what the node may spend, in USD")


_LITERAL: Final = Literal()


class Items(Literal):
    """What a fan-out goes over."""

    says = "a list, a mapping, or one reference such as `${nodes.scan.output}`"

    def read(self, value: Any, at: At, found: Findings) -> Any:
        """Take a list or mapping, or a text that is a reference and nothing else."""
        if not isinstance(value, str | list | tuple | Mapping):
            return self.refuse(value, at, found)
        items = _LITERAL.read(value, at, found)
        if isinstance(items, str) and Template.parse(items).sole is None:
            return self.refuse(value, at, found)
        return items

    def schema(self) -> JsonSchema:
        """Return its types."""
        return {"type": ["array", "object", "string"], "maxItems": ITEMS_MAX}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForEach(PlanValue):
    """Runs a node once for each item; a dependant waits for all and sees all outputs in order."""

    over: Any = spec(Items(), "the items: a list, a mapping, or the output of a node upstream")
    item_name: str = spec(_ITEM_NAME, "what an item is called in templates", "item", key="as")
    items_max: int = spec(
        Number(1, ITEMS_MAX, "items", whole=True), "more items than this fail the node", 1000
    )

    @classmethod
    def settle(cls, values: dict[str, Any], at: At, found: Findings) -> None:
        """Count the items that stand in the plan."""
        over, most = values["over"], values["items_max"]
        if isinstance(over, tuple | FrozenMap) and len(over) > most:
            says = f"`for_each` may have at most `items_max` {most:,} items, got {len(over):,}"
            found.add((*at, "over"), says)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextWish(PlanValue):
    """What an actor should see of the tree."""

    task: str | None = spec(Templated(), "what to look for; the plan's goal by default", None)
    files: tuple[str, ...] = spec(
        Listed(TreePath("the path of a file inside the tree"), "paths"),
        "files to show in any case",
        (),
    )
    tokens_max: int | None = spec(
        Number(1, 2_000_000, "tokens", whole=True), "room for context; a setting by default", None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery(PlanValue):
    """What to do about faults, where it differs from the usual."""

    cures: Mapping[ErrorCategory, tuple[Action, ...]] = spec(
        Mapped(
            Choice([one for one in ErrorCategory if one not in {"cancelled", "internal.bug"}]),
            Listed(Choice(Action), "actions"),
            "kinds of fault to lists of actions",
        ),
        "for a kind of fault, its actions from the mildest to the last",
        FrozenMap(),
    )
    times_max: Mapping[Action, int] = spec(
        Mapped(
            Choice([Action.RETRY, Action.FEEDBACK, Action.FALL_BACK, Action.REPLAN]),
            Number(0, 100, whole=True),
            "actions to whole numbers",
        ),
        "how often an action may be taken for one fault",
        FrozenMap(),
    )

    @classmethod
    def settle(cls, values: dict[str, Any], at: At, found: Findings) -> None:
        """Refuse actions that can never be taken, because recovery only goes up."""
        for category, actions in values["cures"].items():
            rungs = [action.rung for action in actions or ()]
            if rungs != sorted(rungs):
                says = f"Actions must rise from the mildest, got {', '.join(actions)}"
                found.add((*at, "cures", str(category)), says)
