"""Run many AI actors on one codebase at once, with every dollar, error and change accounted for.

This is the public door. What it names is loaded when it is first asked for,
so that `import cleveragents` and `cleveragents --help` cost next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from cleveragents._version import __version__

if TYPE_CHECKING:
    from cleveragents.application.services.acms_pipeline import (
        CircuitBreaker,
        Context,
        ContextPipeline,
        ContextRequest,
        Fragment,
        ParallelStrategyExecutor,
        StopSignal,
        Strategy,
    )
    from cleveragents.application.services.error_recovery_service import (
        ErrorHistory,
        ErrorRecoveryService,
        decide,
    )
    from cleveragents.application.services.plan_execution_context import (
        PlanExecutionContext,
        carried,
    )
    from cleveragents.application.services.recovery_policy import RecoveryPolicy, Remedies
    from cleveragents.bootstrap import Container, Listeners, Parts
    from cleveragents.domain.budget import Balance, Limit, Scopes
    from cleveragents.domain.changeset import ChangeEntry, Changeset
    from cleveragents.domain.command import Command, CommandLimits
    from cleveragents.domain.conflict import Conflict
    from cleveragents.domain.error_record import Action, Decision, ErrorCategory, ErrorRecord
    from cleveragents.domain.errors import (
        BudgetExceeded,
        CircuitOpen,
        CleverAgentsError,
        ConflictError,
        PlanError,
        RequestError,
        SandboxError,
        SetupError,
    )
    from cleveragents.domain.event import Notice
    from cleveragents.domain.money import Money
    from cleveragents.domain.usage import Usage
    from cleveragents.infrastructure.changes.selection import Selection
    from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
    from cleveragents.infrastructure.escrow_cost_tracker import EscrowCostTracker
    from cleveragents.infrastructure.store import Store
    from cleveragents.providers.cost_tracker import CostTracker
    from cleveragents.providers.pricing import Price, PriceTable
    from cleveragents.providers.reservation import Outcome, Reservation
    from cleveragents.settings import Settings
    from cleveragents.workspace import Workspace, WorkspaceOptions

_HOMES: Final = {
    "application.services.acms_pipeline": (
        "CircuitBreaker",
        "Context",
        "ContextPipeline",
        "ContextRequest",
        "Fragment",
        "ParallelStrategyExecutor",
        "StopSignal",
        "Strategy",
    ),
    "application.services.error_recovery_service": (
        "ErrorHistory",
        "ErrorRecoveryService",
        "decide",
    ),
    "application.services.plan_execution_context": ("PlanExecutionContext", "carried"),
    "application.services.recovery_policy": ("RecoveryPolicy", "Remedies"),
    "bootstrap": ("Container", "Listeners", "Parts"),
    "domain.budget": ("Balance", "Limit", "Scopes"),
    "domain.changeset": ("ChangeEntry", "Changeset"),
    "domain.command": ("Command", "CommandLimits"),
    "domain.conflict": ("Conflict",),
    "domain.error_record": ("Action", "Decision", "ErrorCategory", "ErrorRecord"),
    "domain.errors": (
        "BudgetExceeded",
        "CircuitOpen",
        "CleverAgentsError",
        "ConflictError",
        "PlanError",
        "RequestError",
        "SandboxError",
        "SetupError",
    ),
    "domain.event": ("Notice",),
    "domain.money": ("Money",),
    "domain.usage": ("Usage",),
    "infrastructure.changes.selection": ("Selection",),
    "infrastructure.durable_cost_tracker": ("DurableCostTracker",),
    "infrastructure.escrow_cost_tracker": ("EscrowCostTracker",),
    "infrastructure.store": ("Store",),
    "providers.cost_tracker": ("CostTracker",),
    "providers.pricing": ("Price", "PriceTable"),
    "providers.reservation": ("Outcome", "Reservation"),
    "settings": ("Settings",),
    "workspace": ("Workspace", "WorkspaceOptions"),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Action",
    "Balance",
    "BudgetExceeded",
    "ChangeEntry",
    "Changeset",
    "CircuitBreaker",
    "CircuitOpen",
    "CleverAgentsError",
    "Command",
    "CommandLimits",
    "Conflict",
    "ConflictError",
    "Container",
    "Context",
    "ContextPipeline",
    "ContextRequest",
    "CostTracker",
    "Decision",
    "DurableCostTracker",
    "ErrorCategory",
    "ErrorHistory",
    "ErrorRecord",
    "ErrorRecoveryService",
    "EscrowCostTracker",
    "Fragment",
    "Limit",
    "Listeners",
    "Money",
    "Notice",
    "Outcome",
    "ParallelStrategyExecutor",
    "Parts",
    "PlanError",
    "PlanExecutionContext",
    "Price",
    "PriceTable",
    "RecoveryPolicy",
    "Remedies",
    "RequestError",
    "Reservation",
    "SandboxError",
    "Scopes",
    "Selection",
    "Settings",
    "SetupError",
    "StopSignal",
    "Store",
    "Strategy",
    "Usage",
    "Workspace",
    "WorkspaceOptions",
    "__version__",
    "carried",
    "decide",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
