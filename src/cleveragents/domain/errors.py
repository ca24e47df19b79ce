"""The error tree: one class for each decision the caller can take.

    CleverAgentsError
    ├── RequestError      ask differently: an argument breaks a stated rule
    ├── SetupError        fix a setting, a price, a key
    ├── LimitError        raise a limit, or stop; never retried
    │   └── BudgetExceeded
    ├── ProviderError     wait, or switch to another provider
    │   └── CircuitOpen
    ├── PlanError         open, close or correct a changeset
    │   └── ConflictError     choose between versions
    ├── SandboxError      name a path inside the sandbox, raise its limit, or choose another kind
    ├── StoreError        free room, unlock or repair the store; nothing is half-written
    └── InternalError     report our bug

An error is a record: a stable code, a message, facts and a hint.
It survives pickling, and `to_dict()` is what `--json` and the store show.
Every code stands in `CODES` and in docs/errors.md; a code is never reused.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CA1001": "A setting breaks its rule",
        "CA1002": "A key that a provider needs is not set",
        "CA1003": "A value is not an amount of money",
        "CA1004": "The price of a model is not known",
        "CA1005": "An argument breaks its rule",
        "CA1006": "A program that is needed is not installed",
        "CA1007": "A package that is needed is not installed",
        "CA1008": "A model is named in a way that nobody serves",
        "CA1101": "A plan file breaks a rule",
        "CA2103": "The next call could exceed a budget",
        "CA2104": "Spending reached a threshold of a budget (warning)",
        "CA2105": "A bill exceeded its reservation and was recorded (warning)",
        "CA2106": "A reservation got no bill and is charged at its upper bound (warning)",
        "CA2201": "A plan or a node reached its deadline",
        "CA2202": "A model reached its limit of answers",
        "CA3107": "A circuit breaker is open: its strategy or provider is paused",
        "CA3108": "A provider's gate stays closed for longer than the caller can wait",
        "CA3109": "The rate of a provider leaves no room for as long as the caller can wait",
        "CA3110": "A call of a model failed",
        "CA4001": "There is no active changeset to record into",
        "CA4002": "A changeset is finished, or was never started",
        "CA4003": "A change entry breaks its rule",
        "CA4004": "Changesets of a plan start from different versions of a file",
        "CA4101": "Two actors changed the same place",
        "CA4102": "The plan and the user changed the same place; nothing was applied",
        "CA4103": "Later edits overlap what would be taken back; nothing was reverted",
        "CA4104": "Another apply is running on this tree",
        "CA4105": "Files could not be replaced; the tree is as it was",
        "CA4106": "An apply could neither be finished nor taken back; its journal is kept",
        "CA4107": "A plan, apply or conflict of this name is not known",
        "CA4108": "The tree is not in the state that this needs",
        "CA4109": "An apply that died half-way was finished or taken back (warning)",
        "CA4110": "A plan makes links that lead out of the tree (warning)",
        "CA4111": "What a sandbox held could not all be taken into a changeset (warning)",
        "CA4112": "The user's repository is in the middle of a merge, rebase or the like",
        "CA4201": "A node changed files that it must not change",
        "CA4202": "The output of a node cannot be kept",
        "CA4203": "The check of a node failed",
        "CA4301": "A node of a plan failed",
        "CA5001": "A path leads out of the sandbox",
        "CA5002": "This kind of sandbox is not available here",
        "CA5003": "A sandbox holds work that is not in the store yet",
        "CA5004": "A sandbox is not known, released, or held by another process",
        "CA5005": "A command reached its limit of time, memory or output",
        "CA5006": "Commands cannot be confined here, and confinement is required",
        "CA5007": "A file of a sandbox is not there, or is not of the kind that was asked for",
        "CA5008": "A command cannot be started",
        "CA5101": "Git is too old, or refused what was asked of it",
        "CA5201": "A command failed",
        "CA5202": "A tool is not allowed here",
        "CA5203": "A tool is not known, or its arguments break their rule",
        "CA5204": "The output of an actor is not what its node promises",
        "CA5205": "A Python function cannot be used as an actor",
        "CA5206": "A scripted actor failed, as its script says",
        "CA5207": "An edit or a patch does not fit its file",
        "CA5208": "A model repeats a call of a tool that fails",
        "CA5209": "A model asks the user a question",
        "CA5210": "An MCP server does not start, or does not answer",
        "CA5211": "A tool of an MCP server failed",
        "CA5301": "The process that tries a suspected race crashed, hung or reached a limit",
        "CA5302": "The module of a suspected race cannot be imported",
        "CA5303": "No fix of a proven race holds",
        "CA6001": "The store is closed",
        "CA6002": "The file is no store of ours, or one of a newer version",
        "CA6003": "The store has no room to grow",
        "CA6004": "The store is damaged",
        "CA6005": "The store is locked by another program, or did not answer in time",
        "CA6006": "The store cannot be written",
        "CA6007": "The store cannot be opened",
        "CA6008": "The store cannot be read or written",
        "CA6101": "An executor is closed and takes no more work",
        "CA6201": "A plan is being run by another process",
        "CA6202": "This process lost the plan to another one; nothing more is written",
        "CA6203": "A plan is not in the state that this needs",
        "CA6204": "An attempt ended with its process",
        "CA6205": "A conversation is over, or goes on in another process",
        "CA9001": "An unexpected error: our bug",
    }
)


class CleverAgentsError(Exception):
    """Base of everything we raise on purpose."""

    code: str = "CA9001"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        facts: Mapping[str, Any] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.message = message
        self.facts: dict[str, Any] = dict(facts or {})
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle by their positional arguments, which would drop code, facts and hint.
        return _rebuild, (type(self), self.message, self.code, self.facts, self.hint)

    def to_dict(self) -> dict[str, Any]:
        """Return the record that `--json` prints and the store keeps."""
        return {
            "kind": "error",
            "code": self.code,
            "message": self.message,
            "facts": {name: str(value) for name, value in self.facts.items()},
            "hint": self.hint,
        }


def _rebuild(
    kind: type[CleverAgentsError],
    message: str,
    code: str,
    facts: Mapping[str, Any],
    hint: str | None,
) -> CleverAgentsError:
    return kind(message, code=code, facts=facts, hint=hint)


class RequestError(CleverAgentsError, ValueError):
    """Ask differently: an argument breaks a stated rule; nothing was changed."""

    code = "CA1005"
    exit_code = 2


class SetupError(CleverAgentsError):
    """Fix a setting, a price or a key, then ask again."""

    code = "CA1001"
    exit_code = 3


class LimitError(CleverAgentsError):
    """A limit stopped it: raise the limit or stop; a retry cannot help."""

    exit_code = 4


class BudgetExceeded(LimitError):  # noqa: N818  # reads as what happened, like TimeoutError's kin
    """Refused before the call: it could have exceeded a budget; nothing was promised."""

    code = "CA2103"


class ProviderError(CleverAgentsError):
    """Wait, or switch to another provider."""


class CircuitOpen(ProviderError):  # noqa: N818  # names the state the caller met
    """Refused without a call: what was asked for is paused after failures."""

    code = "CA3107"

    @property
    def retry_after_s(self) -> float:
        """How long the pause still lasts, as known when the call was refused."""
        return float(self.facts["retry_after_s"])


class PlanError(CleverAgentsError):
    """A changeset is missing, finished, or was handed an entry that it cannot hold."""

    code = "CA4001"


class ConflictError(PlanError):
    """Two sides changed the same place: both are kept, and a person or a policy must choose."""

    code = "CA4101"
    exit_code = 5


class SandboxError(CleverAgentsError):
    """A path, a command or a sandbox broke a rule of confinement; nothing outside was touched."""

    code = "CA5001"


class StoreError(CleverAgentsError):
    """The store could not do it, and nothing of it is half-written."""

    code = "CA6008"


class InternalError(CleverAgentsError):
    """An invariant of ours broke; state is kept, nothing is retried."""

    code = "CA9001"
    exit_code = 70
