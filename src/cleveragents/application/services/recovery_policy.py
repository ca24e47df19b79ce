"""The rules of recovery: which cure each fault has, in which order, and how often.

`decide` is pure: the same record, standing, policy, remedies and chance give the same decision.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from cleveragents.domain.error_record import (
    Action,
    Decision,
    ErrorCategory,
    ErrorRecord,
    SideEffects,
    Standing,
    is_seconds,
)
from cleveragents.domain.errors import RequestError, SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping

_RETRIES_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPolicy:
    """How patient recovery is; refused at birth where a number breaks its rule."""

    #: First and longest pause of a retry; each further one doubles, and chance takes a part of it.
    backoff_s: float = 0.5
    backoff_s_max: float = 30.0
    #: First pause after a rate limit that names no time.
    rate_limit_backoff_s: float = 2.0
    #: Asked to wait longer than this at once, or in sum since the last success, we move on.
    rate_limit_wait_s_max: float = 600.0
    rate_limit_retries_max: int = 20
    overloaded_retries_max: int = 2
    connect_retries_max: int = 3
    tool_retries_max: int = 3
    #: Each retry works on the tree that the others have made meanwhile.
    conflict_retries_max: int = 3
    feedbacks_max: int = 2
    fall_backs_max: int = 3
    #: For the whole plan, because a re-planned node has another name.
    replans_max: int = 5
    #: The same fault this often in one node is a loop.
    loop_after: int = 3

    def __post_init__(self) -> None:
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name.endswith(("_s", "_s_max")):
                if not is_seconds(value) or value == 0:
                    raise _refused(spec.name, "must be a number of seconds above 0", value)
            elif type(value) is not int or not 0 <= value <= _RETRIES_MAX:
                raise _refused(spec.name, f"must be a whole number from 0 to {_RETRIES_MAX}", value)
        if self.backoff_s_max < self.backoff_s:
            raise _refused("backoff_s_max", "must not be below `backoff_s`", self.backoff_s_max)
        if self.loop_after < 2:
            raise _refused("loop_after", "must be at least 2, one time is no loop", self.loop_after)


def _refused(name: str, rule: str, value: object) -> SetupError:
    return SetupError(f"`{name}` {rule}, got {value!r}", hint=f"Set `{name}` of `RecoveryPolicy`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedies:
    """What the plan still has at hand for this fault; what is not told is not there."""

    other_model: bool = False
    shrink: bool = False
    replan: bool = False
    person: bool = False
    #: Why nothing may be retried now, such as an empty retry budget.
    no_retry: str | None = None
    #: Why the work may not be done once more in any way, such as that all attempts are used.
    no_attempt: str | None = None
    #: What the node says itself: the cures of a fault in place of its ladder, and how often each.
    cures: Mapping[ErrorCategory, tuple[Action, ...]] = field(default_factory=dict)
    times_max: Mapping[Action, int] = field(default_factory=dict)


def _ladders(table: Mapping[ErrorCategory, str]) -> Mapping[ErrorCategory, tuple[Action, ...]]:
    return MappingProxyType(
        {category: tuple(Action[name] for name in row.split()) for category, row in table.items()}
    )


#: The cures of each fault from the mildest to the last; after the last one, the work is aborted.
LADDERS: Final = _ladders(
    {
        ErrorCategory.RATE_LIMIT: "RETRY FALL_BACK ASK",
        ErrorCategory.QUOTA: "FALL_BACK ASK",
        ErrorCategory.OVERLOADED: "RETRY FALL_BACK ASK",
        ErrorCategory.CONNECT: "RETRY FALL_BACK ASK",
        ErrorCategory.READ_TIMEOUT: "RETRY FALL_BACK REPLAN ASK",
        ErrorCategory.CONTEXT_OVERFLOW: "SHRINK FALL_BACK REPLAN ASK",
        ErrorCategory.BAD_REQUEST: "REPLAN ASK",
        ErrorCategory.CONTENT_FILTER: "FEEDBACK FALL_BACK ASK",
        ErrorCategory.AUTH: "FALL_BACK ASK",
        ErrorCategory.BAD_OUTPUT: "FEEDBACK FALL_BACK REPLAN ASK",
        ErrorCategory.LOOP: "FEEDBACK FALL_BACK REPLAN ASK",
        ErrorCategory.TOOL_ARGS: "FEEDBACK REPLAN ASK",
        ErrorCategory.TOOL_TRANSIENT: "RETRY FEEDBACK REPLAN ASK",
        ErrorCategory.TOOL_TIMEOUT: "RETRY FEEDBACK REPLAN ASK",
        ErrorCategory.TOOL_DENIED: "REPLAN ASK",
        ErrorCategory.TOOL_CRASH: "RETRY REPLAN ASK",
        ErrorCategory.STRATEGY: "SKIP",
        ErrorCategory.CHECK_FAILED: "FEEDBACK REPLAN ASK",
        ErrorCategory.CONFLICT: "RETRY REPLAN ASK",
        ErrorCategory.BUDGET: "ASK",
        ErrorCategory.STALLED: "RETRY REPLAN ASK",
        ErrorCategory.QUESTION: "ASK",
        ErrorCategory.CANCELLED: "",
        ErrorCategory.BUG: "",
        ErrorCategory.UNKNOWN: "RETRY ASK",
    }
)

#: The same fault again and again is a loop only where the model chose to do the same again.
LOOPABLE: Final = frozenset(
    {
        ErrorCategory.BAD_OUTPUT,
        ErrorCategory.CONTENT_FILTER,
        ErrorCategory.TOOL_ARGS,
        ErrorCategory.TOOL_CRASH,
        ErrorCategory.CHECK_FAILED,
        ErrorCategory.CONFLICT,
    }
)

# What does the work once more.
_ATTEMPTS: Final = frozenset({Action.RETRY, Action.FEEDBACK, Action.SHRINK, Action.FALL_BACK})

# Told why it was stopped, or asked to reword, a model gets one more chance and not two.
_ONE_FEEDBACK: Final = frozenset({ErrorCategory.LOOP, ErrorCategory.CONTENT_FILTER})

_LAST_WORDS: Final[Mapping[ErrorCategory, str]] = MappingProxyType(
    {
        ErrorCategory.CANCELLED: "it was cancelled on purpose",
        ErrorCategory.BUG: "it is our bug; the state is kept",
    }
)


class KnowsStanding(Protocol):
    """A history: it can tell what is known about one fault."""

    def standing(self, record: ErrorRecord) -> Standing:
        """Return what is known about the fault of this record."""
        ...


def decide(
    record: ErrorRecord,
    history: Standing | KnowsStanding,
    policy: RecoveryPolicy,
    *,
    chance: float = 0.5,
    remedies: Remedies | None = None,
) -> Decision:
    """Take the lowest rung that is not below the last one, not used up, safe and possible.

    Pure: the same arguments give the same decision. `history` is an `ErrorHistory`, or what one
    says about this fault. `chance`, from 0 to below 1, places the delay within its bounds.
    """
    if not isinstance(history, Standing):
        history = history.standing(record)
    if not 0.0 <= chance < 1.0:
        raise RequestError(f"`chance` must be from 0 to below 1, got {chance!r}")
    at_hand = remedies or Remedies()
    delay_s = _delay_s(record, history, policy, chance)
    passed: list[str] = []
    for action in at_hand.cures.get(record.category, LADDERS[record.category]):
        limit = at_hand.times_max.get(action, _limit(action, record.category, policy))
        against = _against(action, record, history, limit)
        against = against or _used_up(action, at_hand) or _missing(action, at_hand)
        if action is Action.RETRY and against is None:
            against = _too_long(record, history, policy, delay_s)
        if against is None:
            waits = delay_s if action is Action.RETRY else 0.0
            return _decided(record, action, passed, delay_s=waits)
        passed.append(against)
    last_words = _LAST_WORDS.get(record.category)
    return _decided(record, Action.ABORT, [last_words] if last_words else passed)


def _decided(
    record: ErrorRecord, action: Action, passed: list[str], *, delay_s: float = 0.0
) -> Decision:
    what = f"{record.underlying} in a loop" if record.underlying else str(record.category)
    reason = f"{what}: {action}" + (f", because {'; '.join(passed)}" if passed else "")
    return Decision(
        action=action,
        delay_s=delay_s,
        reason=reason,
        plan_id=record.plan_id,
        record_seq=record.seq,
    )


def _against(
    action: Action, record: ErrorRecord, history: Standing, limit: int | None
) -> str | None:
    """Say what the rules have against an action, if anything."""
    if record.category is ErrorCategory.BUDGET and action.rung < Action.ASK.rung:
        # A limit is never retried, and what it stopped did not run: nobody may call it skipped.
        return f"`{action}` cannot help where only more money helps"
    if action.rung < history.rung:
        return f"`{action}` is below the rung reached before"
    used = history.replans if action is Action.REPLAN else history.tries.get(action, 0)
    if limit is not None and used >= limit:
        return f"`{action}` was used {used} of {limit} times"
    if action is Action.RETRY and not _safe_to_repeat(record):
        return "a repeat may do its work twice"
    return None


def _limit(action: Action, category: ErrorCategory, policy: RecoveryPolicy) -> int | None:
    feedbacks_max = 1 if category in _ONE_FEEDBACK else policy.feedbacks_max
    limits = {
        Action.RETRY: _retries_max(category, policy),
        Action.FEEDBACK: min(feedbacks_max, policy.feedbacks_max),
        Action.SHRINK: 1,
        Action.FALL_BACK: policy.fall_backs_max,
        Action.REPLAN: policy.replans_max,
    }
    return limits.get(action)


def _retries_max(category: ErrorCategory, policy: RecoveryPolicy) -> int:
    match category:
        case ErrorCategory.RATE_LIMIT:
            return policy.rate_limit_retries_max
        case ErrorCategory.OVERLOADED:
            return policy.overloaded_retries_max
        case ErrorCategory.CONNECT:
            return policy.connect_retries_max
        case ErrorCategory.TOOL_TRANSIENT:
            return policy.tool_retries_max
        case ErrorCategory.CONFLICT:
            return policy.conflict_retries_max
        case _:
            # A read timeout may be billed twice; a timeout, crash, stall or riddle seldom heals.
            return 1


def _safe_to_repeat(record: ErrorRecord) -> bool:
    clean = record.side_effects is SideEffects.NONE
    match record.category:
        case ErrorCategory.READ_TIMEOUT:
            return clean
        case ErrorCategory.TOOL_TRANSIENT:
            return record.idempotent is True
        case ErrorCategory.TOOL_TIMEOUT | ErrorCategory.UNKNOWN:
            return clean or record.idempotent is True
        case ErrorCategory.TOOL_CRASH:
            # The retry gets a fresh sandbox: only effects outside of it could be doubled.
            return record.idempotent is not False
        case _:
            return True


def _used_up(action: Action, remedies: Remedies) -> str | None:
    return remedies.no_attempt if action in _ATTEMPTS else None


def _missing(action: Action, remedies: Remedies) -> str | None:
    """Say why the plan cannot do this now, if it cannot."""
    match action:
        case Action.RETRY:
            return remedies.no_retry
        case Action.FALL_BACK:
            return None if remedies.other_model else "no other model is left"
        case Action.SHRINK:
            return None if remedies.shrink else "the context cannot shrink"
        case Action.REPLAN:
            return None if remedies.replan else "the plan cannot be re-planned"
        case Action.ASK:
            return None if remedies.person else "no person can be reached"
        case _:
            return None


def _delay_s(
    record: ErrorRecord, history: Standing, policy: RecoveryPolicy, chance: float
) -> float:
    doubled = 2.0 ** history.tries.get(Action.RETRY, 0)
    if record.category is not ErrorCategory.RATE_LIMIT:
        # Full jitter; a provider that names a time is still obeyed.
        drawn = chance * min(policy.backoff_s_max, policy.backoff_s * doubled)
        return max(drawn, record.retry_after_s or 0.0)
    if record.retry_after_s is None:
        # Equal jitter: with full jitter a throttled caller may come back at once.
        half = min(policy.backoff_s_max, policy.rate_limit_backoff_s * doubled) / 2
        return half + chance * half
    # Never before the named time, and not all together at it; `Retry-After: 0` still waits a bit.
    named = max(record.retry_after_s, policy.backoff_s)
    return named + chance * min(1.0, named / 10)


def _too_long(
    record: ErrorRecord, history: Standing, policy: RecoveryPolicy, delay_s: float
) -> str | None:
    waits = record.category is ErrorCategory.RATE_LIMIT or record.retry_after_s is not None
    if waits and history.waited_s + delay_s > policy.rate_limit_wait_s_max:
        return (
            f"the provider asks for {delay_s:.0f} s more after {history.waited_s:.0f} s,"
            f" and {policy.rate_limit_wait_s_max:.0f} s is the most we wait"
        )
    return None
