"""From an exception of anybody to an `ErrorRecord`.

The category comes from exception types, HTTP status, provider codes and cause chains.
Message text never decides: it only refines a request that a provider has refused (HTTP 400),
because some providers report a full context or an empty account in no other way.
SDK classes are recognised by package and name along the MRO; no SDK is imported.
Whatever an exception is and does, it gets its record: what raises when it is looked at is passed
over, and depth, breadth and size are bounded. (Only what is no `Exception` passes: Ctrl-C.)
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, ParamSpec, TypedDict, TypeVar, cast

from cleveragents.application.services.error_evidence import Evidence, evidence_of, peek
from cleveragents.application.services.fault_tables import (
    AS_TOOL,
    CLASSES,
    CODES,
    PHRASES,
    VAGUE_CLASSES,
    VAGUE_CODES,
    category_of_status,
)
from cleveragents.domain.error_record import (
    MESSAGE_CHARS_MAX,
    ErrorCategory,
    ErrorRecord,
    SideEffects,
    as_kept,
)
from cleveragents.domain.redaction import SEARCHED_CHARS_MAX, redact_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

P = ParamSpec("P")
T = TypeVar("T")

_CHAIN_MAX: Final = 16
# Groups hold groups, and what caused a member may be a group again: both bounds are needed.
_GROUP_DEPTH_MAX: Final = 16
_LOOKS_MAX: Final = 500
_STORY_LINKS_MAX: Final = 4
_NORMALISED_CHARS_MAX: Final = 1_000

# In a group, a fault that no retry cures decides before one that waiting would cure.
_DECISIVE: Final = (
    ErrorCategory.BUG,
    ErrorCategory.BUDGET,
    ErrorCategory.QUOTA,
    ErrorCategory.AUTH,
    ErrorCategory.TOOL_DENIED,
    ErrorCategory.BAD_REQUEST,
)
_PHASES: Final = {
    "pool": ErrorCategory.CONNECT,
    "connect": ErrorCategory.CONNECT,
    "write": ErrorCategory.READ_TIMEOUT,
    "read": ErrorCategory.READ_TIMEOUT,
}
# Whatever a strategy raises is that strategy's fault, except what was meant for the plan.
_ABOVE_STRATEGY: Final = frozenset({ErrorCategory.CANCELLED, ErrorCategory.BUDGET})


class Hints(TypedDict, total=False):
    """What a caller knows about an error and the exception does not show."""

    node: str | None
    actor: str | None
    attempt: int | None
    provider: str | None
    model: str | None
    tool: str | None
    strategy: str | None
    sent: bool | None
    side_effects: SideEffects
    idempotent: bool | None
    category: ErrorCategory


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an exception is, and the facts that say so."""

    category: ErrorCategory
    evidence: Evidence
    #: A better answer may stand deeper in the chain: `APIConnectionError` says only that it failed.
    vague: bool = False


def describe(
    plan_id: str, error: BaseException, hints: Hints, *, at: float, record_id: str = ""
) -> ErrorRecord:
    """Make the record of an error, not yet numbered; refuse hints of the wrong kind."""
    told = {name: as_kept(name, hint) for name, hint in hints.items() if hint is not None}
    hints = cast("Hints", told)
    verdict = classify(error, at)
    category = _placed(hints.get("category") or verdict.category, hints)
    kind = _unless_it_raises("BaseException", _type_name, error)
    message = _unless_it_raises(_mute(kind), story_of, error)
    place = _unless_it_raises("", _place, error, hints)
    code = next(iter(verdict.evidence.codes), None)
    default_effects = SideEffects.UNKNOWN if hints.get("tool") else SideEffects.NONE
    return ErrorRecord(
        plan_id=plan_id,
        id=record_id,
        at=at,
        category=category,
        message=message,
        exception_type=kind,
        fingerprint=_fingerprint(kind, category, code or "", place, normalised(message)),
        node=hints.get("node"),
        actor=hints.get("actor"),
        attempt=hints.get("attempt"),
        provider=hints.get("provider"),
        model=hints.get("model"),
        tool=hints.get("tool"),
        strategy=hints.get("strategy"),
        status=verdict.evidence.status,
        provider_code=code,
        retry_after_s=verdict.evidence.retry_after_s,
        sent=_was_sent(category, verdict.evidence, hints),
        side_effects=hints.get("side_effects") or default_effects,
        idempotent=hints.get("idempotent"),
    )


def classify(error: BaseException, now_s: float) -> Verdict:
    """Say what an exception is: by itself, else by the first telling one that caused it.

    This never raises, and looks at no more than `_LOOKS_MAX` exceptions.
    """
    unknown = Verdict(ErrorCategory.UNKNOWN, Evidence())
    return _unless_it_raises(unknown, _classified, error, now_s, iter(range(_LOOKS_MAX)))


def _unless_it_raises(otherwise: T, look: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    try:
        return look(*args, **options)
    except Exception:  # noqa: BLE001  # a stranger may raise anything; the error must be kept
        return otherwise


def _classified(
    error: BaseException, now_s: float, looks: Iterator[int], depth: int = 0
) -> Verdict:
    fallback: Verdict | None = None
    for link in _chain(error):
        if next(looks, None) is None:
            break
        verdict = None
        if isinstance(link, BaseExceptionGroup) and depth < _GROUP_DEPTH_MAX:
            members = _members_of(link)
            verdict = _of_group([_classified(one, now_s, looks, depth + 1) for one in members])
        verdict = verdict or _of_one(link, now_s)
        if verdict is None or (link is not error and verdict.category is ErrorCategory.CANCELLED):
            # What was cancelled on the way (a timeout cancels its work) is not the fault.
            continue
        if not verdict.vague:
            return verdict
        fallback = fallback or verdict
    return fallback or Verdict(ErrorCategory.UNKNOWN, evidence_of(error, now_s))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Walk from an exception to what caused it, as a traceback would show it."""
    seen: set[int] = set()
    link: object = error
    while isinstance(link, BaseException) and id(link) not in seen and len(seen) < _CHAIN_MAX:
        seen.add(id(link))
        yield link
        cause, reason = peek(link, "__cause__"), peek(link, "reason")
        if isinstance(cause, BaseException):
            link = cause
        elif isinstance(reason, BaseException):
            link = reason  # how urllib and urllib3 hand over the fault they wrap
        else:
            link = None if peek(link, "__suppress_context__") else peek(link, "__context__")


def _members_of(group: BaseExceptionGroup[BaseException]) -> tuple[BaseException, ...]:
    members = peek(group, "exceptions")
    return members[:_LOOKS_MAX] if isinstance(members, tuple) else ()


def _of_group(verdicts: list[Verdict]) -> Verdict | None:
    telling = [v for v in verdicts if v.category is not ErrorCategory.UNKNOWN]
    faults = [v for v in telling if v.category is not ErrorCategory.CANCELLED]
    for category in _DECISIVE:
        for verdict in faults:
            if verdict.category is category:
                return verdict
    if len(telling) == len(verdicts) or faults:
        return (faults or telling)[0]
    return None


def _of_one(error: BaseException, now_s: float) -> Verdict | None:
    if not isinstance(error, Exception):
        # KeyboardInterrupt, CancelledError, a request to stop: somebody wanted it.
        cancelled = not isinstance(error, BaseExceptionGroup)
        return Verdict(ErrorCategory.CANCELLED, Evidence()) if cancelled else None
    evidence = evidence_of(error, now_s)
    category = (
        _by_code(evidence, CODES)
        or _by_phase(error)
        or _by_class(error, CLASSES)
        or category_of_status(evidence.status)
        or _by_code(evidence, VAGUE_CODES)
    )
    if category is None:
        vague = _by_class(error, VAGUE_CLASSES)
        return Verdict(vague, evidence, vague=True) if vague else None
    return Verdict(_refined(category, evidence), evidence)


def _by_class(
    error: BaseException, table: Mapping[tuple[str, str], ErrorCategory]
) -> ErrorCategory | None:
    for kind in type(error).__mro__:
        category = table.get((str(kind.__module__).partition(".")[0], kind.__name__))
        if category is not None:
            return category
    return None


def _by_code(evidence: Evidence, table: Mapping[str, ErrorCategory]) -> ErrorCategory | None:
    found = (table.get(code.lower()) for code in evidence.codes)
    return next((category for category in found if category is not None), None)


def _by_phase(error: BaseException) -> ErrorCategory | None:
    """Read pydantic-ai's word on how far a request got."""
    if not str(type(error).__module__).startswith("pydantic_ai"):
        return None
    return _PHASES.get(str(peek(error, "phase")))


def _refined(category: ErrorCategory, evidence: Evidence) -> ErrorCategory:
    if evidence.status == 402 and evidence.retry_after_s is not None:
        return ErrorCategory.RATE_LIMIT  # a provider that says when to come back wants us back
    if category is ErrorCategory.BAD_REQUEST and evidence.sentence:
        said = evidence.sentence.lower()
        for phrase, refined in PHRASES:
            if phrase in said:
                return refined
    return category


def _placed(category: ErrorCategory, hints: Hints) -> ErrorCategory:
    """Say the same fault in the words of where it happened: a tool, a strategy, a sent request."""
    if hints.get("category") is not None:
        return category
    if hints.get("strategy"):
        return category if category in _ABOVE_STRATEGY else ErrorCategory.STRATEGY
    if hints.get("tool"):
        return AS_TOOL.get(category, category)
    sent = hints.get("sent")
    if category is ErrorCategory.READ_TIMEOUT and sent is False:
        return ErrorCategory.CONNECT
    if category is ErrorCategory.CONNECT and sent is True:
        return ErrorCategory.READ_TIMEOUT
    return category


def _was_sent(category: ErrorCategory, evidence: Evidence, hints: Hints) -> bool | None:
    told = hints.get("sent")
    if told is not None:
        return told
    if category is ErrorCategory.CONNECT:
        return False
    answered = evidence.status is not None or category is ErrorCategory.READ_TIMEOUT
    return True if answered else None


def _type_name(error: BaseException) -> str:
    kind = type(error)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def story_of(error: BaseException) -> str:
    """Tell an error with what caused it, as far as a reader needs."""
    answered = _answered_with(error)
    if answered is not None:
        return answered
    links = list(islice(_chain(error), _STORY_LINKS_MAX))
    members = _members_of(error) if isinstance(error, BaseExceptionGroup) else ()
    others = (*links[1:], *members[:_STORY_LINKS_MAX])
    told = [f"{_type_name(link)}: {_message_of(link)}" for link in others]
    return " <- ".join([_message_of(error), *told])


def _answered_with(error: BaseException) -> str | None:
    """Return a provider's own words, where pydantic-ai shows them as a dictionary of Python."""
    if not str(type(error).__module__).startswith("pydantic_ai"):
        return None
    evidence = evidence_of(error, 0.0)
    if evidence.status is None or not evidence.sentence:
        return None
    code = f" `{evidence.codes[0]}`" if evidence.codes else ""
    return redact_to(f"HTTP {evidence.status}{code}: {evidence.sentence}", MESSAGE_CHARS_MAX)


def _message_of(error: BaseException) -> str:
    text = _unless_it_raises(None, _text_of, error)
    return _mute(type(error).__name__) if text is None else redact_to(text, MESSAGE_CHARS_MAX)


def _text_of(error: BaseException) -> str | None:
    # One more than is searched, so that the search knows of the cut; as `str` itself would do it,
    # because what a stranger returns may be of a class of its own.
    return str.__getitem__(str(error), slice(SEARCHED_CHARS_MAX + 1))


def _mute(kind: str) -> str:
    return f"<{kind} cannot be shown>"


# What differs between two occurrences of one fault: quoted text, addresses, paths, ids, numbers.
_VARIABLE: Final = re.compile(
    r"""(?<!\w)(?:"[^"]*"|'[^']*'|`[^`]*`)(?!\w)
    | \w+://\S+
    | (?:[A-Za-z]:)?(?:[\\/][\w.@~-]+)+[\\/]?
    | [\w-]*\d[\w.:-]*
    | \b[a-fA-F]{8,}\b""",
    re.VERBOSE,
)


def normalised(message: str) -> str:
    """Return what stays the same in a message when the same fault comes again."""
    begin = message[:_NORMALISED_CHARS_MAX]
    return " ".join(_VARIABLE.sub("*", begin).split()).lower()


def _fingerprint(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode(errors="replace")).hexdigest()[:16]


def _place(error: BaseException, hints: Hints) -> str:
    """Name where it happened: the tool, strategy or model; else the function that raised."""
    named = (hints.get("tool"), hints.get("strategy"), hints.get("provider"), hints.get("model"))
    if any(named):
        return "/".join(name or "" for name in named)
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return ""
    frame = step.tb_frame
    return f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_qualname}"
