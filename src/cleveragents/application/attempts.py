"""One attempt at a node, as its actor sees it, and what the runner asks of the outside for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping
    from types import TracebackType

    from cleveragents.application.services.provider_gate import Pass
    from cleveragents.domain.changeset import FileMode
    from cleveragents.domain.command import Command, Finished
    from cleveragents.domain.conflict import MergeOutcome
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.error_record import ErrorRecord
    from cleveragents.domain.money import Money
    from cleveragents.domain.plan import Node, Plan
    from cleveragents.domain.stop_signal import StopSignal
    from cleveragents.domain.usage import Usage


class Files(Protocol):
    """The files of an attempt: paths are relative to the tree, and no path leads out of it."""

    def read(self, path: str) -> bytes:
        """Return what a file holds."""
        ...

    def write(
        self, path: str, data: bytes, mode: FileMode | None = None, *, tool_call: str | None = None
    ) -> None:
        """Make a file, or replace what it holds; folders are made as needed."""
        ...

    def remove(self, path: str, *, tool_call: str | None = None) -> None:
        """Take a file away."""
        ...

    def rename(self, old: str, new: str, *, tool_call: str | None = None) -> None:
        """Move a file."""
        ...

    def names(self, folder: str = ".") -> tuple[str, ...]:
        """Return what a folder holds, sorted; the names of folders end in `/`."""
        ...

    def walk(self) -> Iterator[str]:
        """Return the paths of all files."""
        ...


class Bench(Protocol):
    """Where one attempt works: a sandbox and a changeset, made when they are first used."""

    @property
    def files(self) -> Files:
        """The files of the plan as they were when the bench was first used, and own writes."""
        ...

    def run(
        self,
        command: Command,
        *,
        stop: StopSignal | None = None,
        on_output: Callable[[bytes], object] | None = None,
    ) -> Finished:
        """Run a command in the sandbox."""
        ...

    def changed(self) -> Mapping[str, bytes | None]:
        """Return what differs here from the user's tree: content by path, None where it is gone.

        That is what was merged into the plan so far, and what this attempt wrote. Files that git
        would not show, links, and what is too large to be read by anybody are left out.
        """
        ...

    def seal(self) -> str | None:
        """Put what was changed into the store, and return the changeset's id.

        None when nothing was ever used. Sealing twice is fine; what is written later is lost.
        """
        ...

    def close(self) -> None:
        """Give the sandbox back; what is not sealed is lost. Closing twice is fine."""
        ...


class Workbench(Protocol):
    """Gives attempts their benches, and merges what they did."""

    def begin(self, plan_id: str) -> None:
        """Take the user's tree as it stands now as the plan's base, unless it has one."""
        ...

    def check_commands(self) -> None:
        """Refuse, as a mistake of the set-up, where no command could be run."""
        ...

    def open(self, plan_id: str, node: str, attempt: int, *, actor: str | None) -> Bench:
        """Return the bench of one attempt; it costs nothing until it is used."""
        ...

    def paths(self, changeset_id: str) -> tuple[str, ...]:
        """Return the paths that a changeset touches, sorted."""
        ...

    def merge(self, changeset_id: str) -> MergeOutcome:
        """Merge a sealed changeset into the plan's tree, or tell the conflicts.

        Merging again what is merged changes nothing.
        """
        ...

    def reject(self, changeset_id: str) -> None:
        """Leave a sealed changeset out for good, unless it is merged; it stays on record."""
        ...

    def salvage(self, plan_id: str, kept: Container[str]) -> None:
        """Clean up after dead runs: reject what they sealed, but for what is `kept`."""
        ...


class Held(Protocol):
    """Money that is promised to one call; a `with` block that ends without a bill keeps it held.

    What may have been billed is charged at its upper bound and listed as unconfirmed.
    """

    @property
    def id(self) -> str | None:
        """What `Purse.correct` knows it by; None where promises have no names."""
        ...

    def settle(self, amount: Money | float) -> object:
        """Charge what was billed, and give the rest back."""
        ...

    def release(self) -> object:
        """Give it all back: nothing was billed."""
        ...

    def abandon(self) -> object:
        """Keep it charged as unconfirmed: it may have been billed, and nobody says how much."""
        ...

    def __enter__(self) -> Self:
        """Begin the call."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the call."""
        ...


class Purses(Protocol):
    """Gives attempts their purses, and puts the budgets of plans in force."""

    def set_budget(self, plan_id: str, plan: Plan) -> None:
        """Put the limits of a plan and of its nodes in force."""
        ...

    def open(self, payer: Payer, on_spend: Callable[[Money], object]) -> Purse:
        """Return the purse of one attempt; `on_spend` hears each amount that is charged."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """On whose account an attempt spends."""

    plan_id: str
    node: str
    actor: str
    session: str | None = None


class Purse(Protocol):
    """The money of one attempt: bound to the scopes of its plan, node and actor."""

    def reserve(self, amount: Money | float, *, model: str | None = None) -> Held:
        """Promise money to a call, or refuse with BudgetExceeded before anything is spent."""
        ...

    def record(
        self, amount: Money | float, *, usage: Usage | None = None, model: str | None = None
    ) -> None:
        """Record a bill that came without a promise; it is never refused."""
        ...

    def correct(self, reservation: str, amount: Money | float) -> None:
        """Put a bill in place of what stands for a promise, such as of a process that died."""
        ...


@dataclass(frozen=True, slots=True)
class Recorded:
    """A fault that its actor has recorded and raises, so that the runner decides about it."""

    error: BaseException
    record: ErrorRecord
    #: What had let the call through that failed; a limit closes its gate.
    gate_pass: Pass | None = None


def _not_heard(_: Recorded) -> None:
    """Nobody decides: an actor was asked to work without a runner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptContext:
    """What an actor is asked, and everything it may use; one for each attempt, never shared."""

    plan_id: str
    goal: str
    #: With its defaults filled in and its templates replaced by their values.
    node: Node
    #: The node's name, or, of a fan-out, the name of one instance such as `port[2]`.
    instance: str
    attempt: int
    inputs: Mapping[str, Any]
    #: Why the attempts before failed, the newest last; of a failed check, what it printed.
    feedback: tuple[str, ...] = ()
    bench: Bench
    purse: Purse
    #: Set when the attempt is cancelled or out of time; whoever works long looks at it.
    stop: StopSignal
    #: Keeps one line in the log of the plan.
    log: Callable[[str], None]
    #: Finds context; None where no pipeline is set up.
    find_context: Callable[[ContextRequest], Any] | None = None
    #: Hears of a fault that is on record already, before it is raised: none is recorded twice.
    hand_over: Callable[[Recorded], object] = _not_heard

    @property
    def files(self) -> Files:
        """The files of the attempt."""
        return self.bench.files


@dataclass(frozen=True, slots=True)
class ActorResult:
    """What an actor made of it; files it changed are found without being named."""

    #: JSON-like: handed to the nodes that need this one.
    output: Any = None
    #: For people, such as the first line of a commit message.
    summary: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


class Actor(Protocol):
    """Does the work of a node; it raises when it could not.

    An actor that has another one to fall back on, such as another model, has it as `fall_back`.
    """

    def run(self, attempt: AttemptContext) -> ActorResult:
        """Work on one attempt."""
        ...
