"""A workspace: one user's tree, with everything that plans do to it.

Like `bootstrap`, it names concrete classes and wires them once.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from cleveragents.domain.command import Command
from cleveragents.domain.errors import PlanError, StoreError
from cleveragents.infrastructure.changes.apply_rows import plan_state
from cleveragents.infrastructure.changes.difference import Difference
from cleveragents.infrastructure.changes.harvest import Harvest
from cleveragents.infrastructure.changes.plan_apply import PlanApply
from cleveragents.infrastructure.changes.plan_trees import PlanTrees
from cleveragents.infrastructure.changes.recorded_tree import RecordedTree
from cleveragents.infrastructure.changes.selection import EVERYTHING, selected_commit
from cleveragents.infrastructure.git.repository import GitRepository
from cleveragents.infrastructure.git.user_repository import UserRepository
from cleveragents.infrastructure.leftovers import sweep
from cleveragents.infrastructure.sandbox.command import CommandRunner
from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree
from cleveragents.infrastructure.sandbox.confinement import Confinement
from cleveragents.infrastructure.sandbox.sandboxes import SandboxManager
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cleveragents.domain.changeset import Changeset
    from cleveragents.domain.command import Finished
    from cleveragents.domain.conflict import MergeOutcome
    from cleveragents.domain.event import Notice
    from cleveragents.domain.stop_signal import StopSignal
    from cleveragents.infrastructure.changes.selection import Selection
    from cleveragents.infrastructure.sandbox.sandbox import Sandbox, SandboxInfo

#: Where everything of ours lies in the user's tree.
HOME: Final = ".cleveragents"

_STARTED: Final = "attempt.started"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceOptions:
    """How attempts are kept apart: the kind of sandbox, and whether commands must be confined."""

    sandbox_kind: str = "auto"
    confinement: Confinement | str = Confinement.AUTO
    #: Folders outside of the tree that confined commands may read besides the usual ones.
    readable: tuple[Path, ...] = ()
    on_notice: Callable[[Notice], object] | None = None
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a node: its sandbox, its changeset, and how tools and commands work in it."""

    sandbox: Sandbox
    changeset_id: str
    files: RecordedTree
    _runner: CommandRunner = field(repr=False)

    def run(self, *argv: str) -> Finished:
        """Run a program in the sandbox, confined where that is possible."""
        return self.run_command(Command(argv))

    def run_command(
        self,
        command: Command,
        *,
        stop: StopSignal | None = None,
        on_output: Callable[[bytes], object] | None = None,
    ) -> Finished:
        """Run a command with limits, environment and input of its own."""
        return self._runner.run(command, self.sandbox.place, stop=stop, on_output=on_output)


class PlanChanges:
    """What plans did to one tree: merges, conflicts, differences, apply and revert.

    Every method is thread-safe, and several processes may work on one tree at the same time.
    """

    def __init__(self, root: Path, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self.root = root.absolute()
        self.home = made_home(self.root)
        check_own(self.home)
        self.store = store
        self.clock = clock
        self.repository = GitRepository(self.root, self.home)
        self.changesets = SqliteChangesetStore(store, clock=clock)
        self.trees = PlanTrees(store, self.repository, clock=clock)
        self.applies = PlanApply(store, self.repository, clock=clock)

    def difference(self, plan_id: str, selection: Selection = EVERYTHING) -> Difference:
        """Return what a plan, or a part of it, changed in the tree that it began with."""
        with self.store.read() as connection:
            plan, _ = plan_state(connection, plan_id)
        wanted = selected_commit(self.repository, plan, selection)
        return Difference(self.repository, plan.tree.base, wanted)


class Workspace:
    """Sandboxes for attempts at one tree, and what becomes of their changes.

    Every method is thread-safe, and several processes may work on one tree at the same time.
    Opening finishes, or takes back, an apply that died half-way.
    """

    def __init__(
        self, root: Path, store: Store | None = None, options: WorkspaceOptions | None = None
    ) -> None:
        chosen = options or WorkspaceOptions()
        self._clock = chosen.clock
        with ExitStack() as opened:
            if store is None:
                path = made_home(root.absolute()) / "state.db"
                store = opened.enter_context(Store(path))
            self.changes = PlanChanges(root, store, clock=chosen.clock)
            self.recovered = self.changes.applies.recover()
            self._harvest = Harvest(
                self.changes.repository,
                self.changes.changesets,
                self.changes.trees,
                clock=chosen.clock,
            )
            self._runner = CommandRunner(
                chosen.confinement, readable=chosen.readable, on_notice=chosen.on_notice
            )
            self.sandboxes = opened.enter_context(
                SandboxManager(
                    self.changes.repository,
                    store,
                    tree_of=self.changes.trees.tree_of,
                    kind=chosen.sandbox_kind,
                )
            )
            self._opened = opened.pop_all()

    def begin(self, plan_id: str) -> None:
        """Take the user's tree as it stands, uncommitted work included, as the plan's base."""
        tree = self.changes.trees.begin(plan_id)
        self.sandboxes.prepare(tree.base)

    def check_commands(self) -> None:
        """Refuse, with CA5006, where commands must be confined and cannot be."""
        self._runner.check()

    @contextmanager
    def attempt(
        self, plan_id: str, node: str, attempt: int = 1, *, actor: str | None = None
    ) -> Iterator[Attempt]:
        """Give a sandbox for one run of a node; after it, what was changed is in the store.

        That holds also when the block raises: the changes are kept, and merged by nobody.
        """
        sandbox = self.sandboxes.create(plan_id, node, attempt)
        try:
            changeset_id = self._start(sandbox, actor)
        except BaseException:
            self.sandboxes.release(sandbox.id, discard=True)
            raise
        try:
            with ConfinedTree(sandbox.path) as tree:
                files = RecordedTree(tree, self.changes.changesets, changeset_id)
                yield Attempt(sandbox, changeset_id, files, self._runner)
        finally:
            self.seal(sandbox, changeset_id)

    def seal(self, sandbox: Sandbox, changeset_id: str) -> Changeset:
        """Put what a sandbox holds into the store, and let the sandbox go."""
        changeset = self._harvest.seal(sandbox, changeset_id)
        self.sandboxes.mark_sealed(sandbox.id, changeset_id)
        self.sandboxes.release(sandbox.id)
        return changeset

    def merge(self, changeset_id: str) -> MergeOutcome:
        """Merge a sealed changeset into its plan's tree, or tell the conflicts."""
        return self.changes.trees.merge(changeset_id)

    def collect_garbage(self) -> tuple[SandboxInfo, ...]:
        """Remove what dead processes left; what their sandboxes held is in the store first."""
        # By the true time, which is that of files.
        sweep(self.changes.home, time.time())
        return self.sandboxes.collect_garbage(self._salvage)

    def close(self) -> None:
        """Stop the threads; a store that was given stays open."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, sandbox: Sandbox, actor: str | None) -> str:
        """Open the changeset of a sandbox, and write down that they belong together."""
        plan, node, attempt = sandbox.plan, sandbox.node, sandbox.attempt
        changesets = self.changes.changesets
        changeset_id = changesets.start(plan, actor=actor, node=node, attempt=attempt)
        body = {"sandbox": sandbox.id, "changeset": changeset_id, "node": node, "attempt": attempt}
        at = self._clock()
        self.changes.store.write(lambda tx: tx.event(_STARTED, body, at=at, plan=plan, actor=actor))
        return changeset_id

    def _salvage(self, sandbox: Sandbox) -> None:
        """Seal what a dead process left, into the changeset that it had opened for it."""
        changeset_id = self._opened_for(sandbox) or self._start(sandbox, None)
        self._harvest.seal(sandbox, changeset_id)
        self.sandboxes.mark_sealed(sandbox.id, changeset_id)

    def _opened_for(self, sandbox: Sandbox) -> str | None:
        with self.changes.store.read() as connection:
            found = connection.execute(
                "SELECT body FROM events WHERE plan = ? AND kind = ? ORDER BY seq DESC",
                (sandbox.plan, _STARTED),
            )
            told = (json.loads(body) for (body,) in found)
            return next((one["changeset"] for one in told if one["sandbox"] == sandbox.id), None)


def made_home(root: Path) -> Path:
    """Return the state folder of a tree; one that is made now is kept out of git."""
    home = root / HOME
    try:
        if not home.is_dir():
            home.mkdir(mode=0o700, exist_ok=True)
            (home / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"The folder `{home}` cannot be made: {error.strerror}",
            code="CA6007",
            facts={"folder": home},
            hint="Make room for it, or choose a tree that you may write to",
        ) from error
    return home


def check_own(home: Path) -> None:
    """Refuse a state folder that came with the tree: it would hold a stranger's books."""
    if UserRepository(home.parent).tracks(home.name):
        raise PlanError(
            f"The folder `{home}` is tracked by git, and may be the work of a stranger",
            code="CA4108",
            facts={"folder": home},
            hint=f"Delete it unless it is yours, then run `git rm -r --cached {home.name}`",
        )
