"""What is done about an attempt that failed: recorded, decided, and told to the next attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.services.recovery_policy import Remedies
from cleveragents.application.services.run_result import ANEW, NOT_CONFINED
from cleveragents.application.write_patterns import listed
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import (
    BudgetExceeded,
    CleverAgentsError,
    ConflictError,
    LimitError,
    PlanError,
)
from cleveragents.domain.money import Money
from cleveragents.domain.redaction import redact_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.application.attempts import Recorded
    from cleveragents.application.services.attempt_order import Crew, Order
    from cleveragents.domain.command import Finished
    from cleveragents.domain.conflict import MergeOutcome
    from cleveragents.domain.error_record import Decision, ErrorRecord

#: How much of what a check printed the next attempt is told, and how many failures it hears of.
OUTPUT_CHARS_MAX: Final = 8_000
FEEDBACK_MAX: Final = 5


def recovered(
    crew: Crew,
    order: Order,
    error: BaseException,
    *,
    other_actor: bool,
    recorded: Recorded | None = None,
) -> tuple[ErrorRecord, Decision]:
    """Record what went wrong with an attempt, and decide about it; durable when it returns.

    What its actor has `recorded` already is only decided about.
    """
    own = order.node.recovery
    remedies = Remedies(
        other_model=other_actor,
        replan=order.can_replan,
        # Somebody always can be asked: at the latest whoever resumes the plan.
        person=True,
        no_attempt=order.no_attempt,
        cures={} if own is None else own.cures,
        times_max={} if own is None else own.times_max,
    )
    if recorded is not None:
        record, gate_pass = recorded.record, recorded.gate_pass
        return record, crew.errors.recover(record, remedies, gate_pass=gate_pass)
    hints: dict[str, Any] = {
        "node": order.record.id,
        "actor": order.record.actor,
        "attempt": order.record.attempt,
    }
    category = _category_told(error)
    if category is not None:
        hints["category"] = category
    record = crew.errors.record_error(order.plan_id, error, **hints)
    if getattr(error, "code", None) == NOT_CONFINED:
        # Whatever the node says: an attempt cannot mend the machine that it runs on.
        return record, crew.errors.keep_decision(record, Action.ABORT, "the set-up must be mended")
    return record, crew.errors.recover(record, remedies)


def kept_error(error: BaseException, record: ErrorRecord, decision: Decision) -> dict[str, Any]:
    """Return what the journal keeps of a failure; texts are redacted."""
    return {
        **(_kept_refusal(error) if isinstance(error, BudgetExceeded) else {}),
        "code": error.code if isinstance(error, CleverAgentsError) else "",
        "message": record.message,
        "category": str(record.category),
        "hint": error.hint if isinstance(error, CleverAgentsError) else None,
        "action": str(decision.action),
        "reason": decision.reason,
    }


def _kept_refusal(error: BudgetExceeded) -> dict[str, Any]:
    """Return whose budget has no room, and how large it must at least be."""
    parts = (error.facts.get(name) for name in ("spent", "promised", "asked"))
    needed = Money(sum(one.pico for one in parts if isinstance(one, Money)))
    return {"scope": error.facts.get("scope"), "needed_usd": f"{needed.usd:f}"}


def feedback_of(
    error: BaseException, record: ErrorRecord, earlier: tuple[str, ...]
) -> tuple[str, ...]:
    """Return why the attempts so far failed, the newest last."""
    output = error.facts.get("output") if isinstance(error, CleverAgentsError) else None
    told = record.message
    if output:
        told += "\n" + redact_to(str(output), OUTPUT_CHARS_MAX)
    return (*earlier, told)[-FEEDBACK_MAX:]


def out_of_time(order: Order, *, left: bool = False) -> LimitError:
    """Return the error of an attempt that reached its timeout."""
    name, timeout_s = order.record.id, order.node.timeout_s
    ending = "; it did not stop when asked, and was left behind" if left else ""
    return LimitError(
        f"Attempt {order.record.attempt} of node `{name}` reached its timeout of"
        f" {timeout_s:g} s{ending}",
        code="CA2201",
        facts={"node": name, "timeout_s": timeout_s, "category": ErrorCategory.TOOL_TIMEOUT},
        hint="Let the actor look at `attempt.stop`"
        if left
        else f"Raise `timeout_s` of node `{order.node.name}`: {ANEW}",
    )


def conflict_of(order: Order, outcome: MergeOutcome) -> ConflictError:
    """Return the error of a node whose changes lie in the way of others."""
    paths = sorted({one.path for one in outcome.conflicts})
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return ConflictError(
        f"Node `{order.record.id}` and others changed the same place of {paths[0]!r}{more}",
        facts={
            "node": order.record.id,
            "changeset": outcome.changeset_id,
            "conflicts": [one.id for one in outcome.conflicts],
            "paths": paths,
        },
        hint="Run `cleveragents changes conflicts`, resolve them, then resume the plan",
    )


def forbidden_writes(order: Order, paths: Sequence[str]) -> PlanError:
    """Return the error of a node that changed what its `writes` do not allow."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return PlanError(
        f"Node `{order.record.id}` changed {paths[0]!r}{more},"
        f" and may change {listed(order.node.writes)}",
        code="CA4201",
        facts={
            "node": order.record.id,
            "paths": list(paths),
            "category": ErrorCategory.CHECK_FAILED,
        },
        hint=f"Add a pattern to `writes` of node `{order.node.name}`: {ANEW}",
    )


def failed_check(order: Order, finished: Finished) -> PlanError:
    """Return the error of a node whose check does not pass, with what it printed."""
    assert order.node.check is not None
    command = order.node.check.command
    shown = command if isinstance(command, str) else " ".join(command)
    how = {"time": "ran out of time", "output": "printed too much", "cancelled": "was stopped"}
    why = how.get(finished.stopped or "", f"ended with exit code {finished.exit_code}")
    printed = (finished.stdout + finished.stderr).decode("utf-8", "replace")
    return PlanError(
        f"The check `{shown:.200}` of node `{order.record.id}` {why}",
        code="CA4203",
        facts={
            "node": order.record.id,
            "exit_code": finished.exit_code,
            # The end of what a check prints tells most.
            "output": printed[-OUTPUT_CHARS_MAX:],
            "category": ErrorCategory.CHECK_FAILED,
        },
        hint="See the output of the check, and repair what it complains about",
    )


def _category_told(error: BaseException) -> ErrorCategory | None:
    """Return the kind of fault that an error of ours names itself."""
    told = error.facts.get("category") if isinstance(error, CleverAgentsError) else None
    return None if told is None else ErrorCategory(told)
