"""Why an apply did not happen, in our words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import ConflictError, PlanError, SandboxError

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED_MAX: Final = 10
_UNCHANGED: Final = "nothing was changed"


def changed_since(paths: Sequence[str]) -> ConflictError:
    """Say that files are no longer what the plan was compared with."""
    others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return ConflictError(
        f"{paths[0]!r}{others} changed while the plan was applied; {_UNCHANGED}",
        code="CA4102",
        facts={"changed": len(paths), "paths": [repr(path) for path in paths[:_NAMED_MAX]]},
        hint="Apply the plan again: it is then merged with the new version",
    )


def not_replaced(error: OSError, path: str) -> PlanError:
    """Say which file stopped the apply, and that the tree is as it was."""
    reason = error.strerror or repr(error)
    return PlanError(
        f"{path!r} could not be put in place: {reason}; {_UNCHANGED}",
        code="CA4105",
        facts={"path": repr(path), "reason": reason},
        hint="Remove the cause, then apply the plan again",
    )


def not_taken_back(error: BaseException, path: str, apply_id: str) -> PlanError:
    """Say that a part of the apply is in the tree, and that its journal can finish it."""
    reason = getattr(error, "strerror", None) or repr(error)
    return PlanError(
        f"Apply `{apply_id}` stopped at {path!r} and could not be taken back: {reason}",
        code="CA4106",
        facts={"apply": apply_id, "path": repr(path), "reason": reason, "kept": "its journal"},
        hint="Remove the cause; the next command finishes the apply or takes it back",
    )


def journal_damaged(apply_id: str, reason: str) -> PlanError:
    """Say that a journal cannot be followed; guessing could destroy what it protects."""
    return PlanError(
        f"The journal of apply `{apply_id}` cannot be followed: {reason}",
        code="CA4106",
        facts={"apply": apply_id, "reason": reason, "kept": "the files that it replaced"},
        hint=f"Look into `.cleveragents/apply/{apply_id}`, whose `N.old` and `N` are kept versions;"
        " then move it away, and applies go on",
    )


def busy(holder: str, wait_s: float) -> PlanError:
    """Say who applies to this tree now."""
    return PlanError(
        f"Another apply is running on this tree; waited {wait_s:g} s for it",
        code="CA4104",
        facts={"process": holder or "unknown", "waited": f"{wait_s:g} s"},
        hint="Apply again when it has finished",
    )


def leads_away(path: str) -> SandboxError:
    """Say that a folder is a symbolic link, which is never followed."""
    return SandboxError(
        f"The folder {path!r} is a symbolic link, and an apply never writes through one; "
        f"{_UNCHANGED}",
        code="CA5001",
        facts={"path": repr(path)},
        hint="Name the files by the folder that the link leads to",
    )


def ours(path: str) -> SandboxError:
    """Say that a target lies where the journal itself lies."""
    return SandboxError(
        f"A target must stay out of the folder of CleverAgents itself, got {path!r}",
        code="CA5001",
        facts={"path": repr(path)},
        hint="Leave this file out of the plan",
    )


def no_file(path: str, what: str = "neither a file nor a symbolic link") -> PlanError:
    """Say that something else stands where a file was expected."""
    return PlanError(
        f"{path!r} is {what}; {_UNCHANGED}",
        code="CA4108",
        facts={"path": repr(path), "found": what},
        hint="Move it away, then apply the plan again",
    )


def contradiction(path: str, why: str) -> PlanError:
    """Say that the targets of one apply cannot all be true."""
    return PlanError(
        f"The targets of an apply must not contradict each other: {path!r} {why}",
        code="CA4003",
        facts={"path": repr(path)},
        hint="Give one target for each path, as it shall be in the end",
    )
