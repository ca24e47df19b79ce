"""What went wrong and what was decided about it: values, without any rule of recovery.

`cleveragents.domain.errors` is the tree of exceptions we raise;
here are the records of errors that happened, ours and everybody else's.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from cleveragents.domain.errors import RequestError
from cleveragents.domain.redaction import redact_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MESSAGE_CHARS_MAX: Final = 2_000
NAME_CHARS_MAX: Final = 200


class ErrorCategory(StrEnum):
    """What kind of cure a fault has; docs/recovery.md lists what is done about each."""

    RATE_LIMIT = "llm.rate_limit"
    QUOTA = "llm.quota"
    OVERLOADED = "llm.overloaded"
    CONNECT = "llm.connect"
    READ_TIMEOUT = "llm.read_timeout"
    CONTEXT_OVERFLOW = "llm.context_overflow"
    BAD_REQUEST = "llm.bad_request"
    CONTENT_FILTER = "llm.content_filter"
    AUTH = "llm.auth"
    BAD_OUTPUT = "llm.bad_output"
    LOOP = "llm.loop"
    TOOL_ARGS = "tool.args"
    TOOL_TRANSIENT = "tool.transient"
    TOOL_TIMEOUT = "tool.timeout"
    TOOL_DENIED = "tool.denied"
    TOOL_CRASH = "tool.crash"
    STRATEGY = "strategy.error"
    CHECK_FAILED = "plan.check_failed"
    CONFLICT = "plan.conflict"
    BUDGET = "plan.budget"
    STALLED = "plan.stalled"
    QUESTION = "plan.question"
    CANCELLED = "cancelled"
    BUG = "internal.bug"
    UNKNOWN = "unknown"


class SideEffects(StrEnum):
    """What the failed work may have left behind outside the model's answer."""

    NONE = "none"
    PARTIAL = "partial"
    UNKNOWN = "unknown"


#: What a program does again when it is run again: only what it is run on can differ.
SAME_AGAIN: Final = (
    ErrorCategory.CHECK_FAILED,
    ErrorCategory.TOOL_CRASH,
    ErrorCategory.TOOL_TIMEOUT,
    ErrorCategory.UNKNOWN,
)


class Action(StrEnum):
    """What to do about a fault."""

    RETRY = "retry"
    FEEDBACK = "retry_with_feedback"
    SHRINK = "shrink_context"
    FALL_BACK = "fall_back"
    REPLAN = "replan"
    ASK = "ask"
    SKIP = "skip"
    ABORT = "abort"

    @property
    def rung(self) -> int:
        """How far up the ladder this is; for one fault of one node it never goes down."""
        return _RUNGS[self]


# Skipping stands beside the ladder: the work goes on without what failed.
_RUNGS: Final[Mapping[Action, int]] = MappingProxyType(
    {
        Action.SKIP: 0,
        Action.RETRY: 1,
        Action.FEEDBACK: 2,
        Action.SHRINK: 2,
        Action.FALL_BACK: 3,
        Action.REPLAN: 4,
        Action.ASK: 5,
        Action.ABORT: 6,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """One error of one plan, as it is kept.

    Every text is redacted and bounded when the record is made, so no record ever holds a secret
    (`plan_id` alone is taken as it is: it is a name, and the key of the history).
    A value of the wrong kind is refused then, too; the text of a category becomes the category.
    `seq` is 0 until a history has numbered it.
    """

    plan_id: str
    category: ErrorCategory = ErrorCategory.UNKNOWN
    message: str = ""
    exception_type: str = ""
    fingerprint: str = ""
    seq: int = 0
    id: str = ""
    at: float = 0.0
    node: str | None = None
    actor: str | None = None
    attempt: int | None = None
    #: What a loop is a loop of.
    underlying: ErrorCategory | None = None
    provider: str | None = None
    model: str | None = None
    tool: str | None = None
    strategy: str | None = None
    status: int | None = None
    provider_code: str | None = None
    retry_after_s: float | None = None
    #: Whether the request left us, and so may be billed; None when nobody knows.
    sent: bool | None = None
    side_effects: SideEffects = SideEffects.NONE
    idempotent: bool | None = None

    def __post_init__(self) -> None:
        check_plan_id(self.plan_id)
        for name in _RULES:
            object.__setattr__(self, name, as_kept(name, getattr(self, name)))
        for name, chars_max in _TEXTS:
            text = getattr(self, name)
            if text:
                object.__setattr__(self, name, redact_to(text, chars_max))

    @property
    def is_own_refusal(self) -> bool:
        """Say whether our own gate or breaker refused, so that nothing was sent."""
        return self.provider_code in _OWN_REFUSALS

    @property
    def gate_key(self) -> str | None:
        """The name of the gate that calls to this provider and model share.

        A refusal of our own has none: it must neither close a gate nor cost the provider's retries.
        """
        return None if self.is_own_refusal else gate_key(self.provider, self.model)

    def numbered(self, seq: int, *, loop: bool = False) -> ErrorRecord:
        """Return this record with its number; as a loop, with what it is a loop of."""
        # Copied by hand: its texts are clean already, and a history's lock is held meanwhile.
        twin = object.__new__(ErrorRecord)
        for name in self.__slots__:
            object.__setattr__(twin, name, getattr(self, name))
        object.__setattr__(twin, "seq", seq)
        if loop:
            object.__setattr__(twin, "underlying", self.category)
            object.__setattr__(twin, "category", ErrorCategory.LOOP)
        return twin

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON and the store; `from_dict` reads them back."""
        return _plain(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ErrorRecord:
        """Read a record back from `to_dict`."""
        return cls(**values)


# An open breaker (CA3107), a closed gate (CA3108) and a rate that is used up (CA3109).
_OWN_REFUSALS: Final = frozenset({"CA3107", "CA3108", "CA3109"})
_TEXTS: Final = (
    ("message", MESSAGE_CHARS_MAX),
    *(
        (name, NAME_CHARS_MAX)
        for name in (
            "exception_type",
            "fingerprint",
            "id",
            "node",
            "actor",
            "provider",
            "model",
            "tool",
            "strategy",
            "provider_code",
        )
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided about one record, and why."""

    action: Action
    reason: str
    delay_s: float = 0.0
    plan_id: str = ""
    #: The number of the record this is about.
    record_seq: int = 0
    #: The number of this decision in its plan's history, from 1; 0 until it is kept.
    seq: int = 0
    at: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON and the store."""
        return _plain(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All that a history knows about one fault, and all that a decision looks at."""

    #: How often this fingerprint came in this node, this time included.
    times: int = 1
    #: The highest rung decided for it so far.
    rung: int = 0
    #: What was tried in this node against this category since the node's last success.
    tries: Mapping[Action, int] = field(default_factory=dict)
    #: How long those tries waited, together.
    waited_s: float = 0.0
    #: How often this plan was re-planned.
    replans: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySnapshot:
    """A plan's errors at one moment: the kept tail of both lists, and exact counts of all."""

    plan_id: str
    records: tuple[ErrorRecord, ...] = ()
    decisions: tuple[Decision, ...] = ()
    count: int = 0
    decision_count: int = 0
    by_category: Mapping[ErrorCategory, int] = field(default_factory=dict)

    @property
    def undecided(self) -> tuple[ErrorRecord, ...]:
        """The kept records about which nothing is decided yet."""
        if self.count == self.decision_count:
            return ()
        decided = {one.record_seq for one in self.decisions}
        return tuple(one for one in self.records if one.seq not in decided)


def check_plan_id(plan_id: object) -> None:
    """Refuse what cannot name a plan."""
    if not isinstance(plan_id, str) or not plan_id.strip():
        raise RequestError(
            f"A plan id must be a text that is not empty, got {plan_id!r:.80}",
            hint="Pass the id of the plan that the error belongs to",
        )


def is_seconds(value: object) -> bool:
    """Tell whether a value is a length of time: a number from 0, and not infinite."""
    return _is_number(value) and value >= 0


def _is_number(value: object) -> TypeGuard[int | float]:
    # Compared, not converted: a whole number may be too large to be a float at all.
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


_CATEGORIES: Final = {str(category): category for category in ErrorCategory}
_NAMED: Final[Mapping[str, Mapping[str, StrEnum]]] = MappingProxyType(
    {
        "category": _CATEGORIES,
        "underlying": _CATEGORIES,
        "side_effects": {str(effects): effects for effects in SideEffects},
    }
)
# What each field must be; those named in `_OPTIONAL` may be None as well.
_RULES: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = MappingProxyType(
    {
        "category": ("an `ErrorCategory`", lambda value: isinstance(value, ErrorCategory)),
        "underlying": ("an `ErrorCategory`", lambda value: isinstance(value, ErrorCategory)),
        "side_effects": ("one of `SideEffects`", lambda value: isinstance(value, SideEffects)),
        **dict.fromkeys((name for name, _ in _TEXTS), ("a text", _is_text)),
        **dict.fromkeys(("seq", "attempt", "status"), ("a whole number from 0", _is_count)),
        "at": ("a number of seconds", _is_number),
        "retry_after_s": ("a number of seconds from 0", is_seconds),
        **dict.fromkeys(
            ("sent", "idempotent"), ("true or false", lambda value: isinstance(value, bool))
        ),
    }
)
_OPTIONAL: Final = frozenset(spec.name for spec in fields(ErrorRecord) if spec.default is None)


def as_kept(name: str, value: object) -> Any:
    """Return a field's value as a record keeps it, or refuse it: later it would break a rule."""
    if name in _NAMED and isinstance(value, str):
        value = _NAMED[name].get(value, value)
    rule, holds = _RULES[name]
    if holds(value) or (value is None and name in _OPTIONAL):
        return value
    raise RequestError(
        f"`{name}` must be {rule}, got {value!r:.80}",
        hint=f"Pass `{name}` as {rule}, or leave it out",
    )


def gate_key(provider: str | None, model: str | None = None) -> str | None:
    """Name the gate of a provider, or of one model of it; without a provider there is none."""
    if not provider:
        return None
    return f"{provider}:{model}" if model else provider


def _plain(value: ErrorRecord | Decision) -> dict[str, Any]:
    found = {spec.name: getattr(value, spec.name) for spec in fields(value)}
    return {name: str(v) if isinstance(v, StrEnum) else v for name, v in found.items()}
