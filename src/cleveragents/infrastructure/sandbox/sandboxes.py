"""The sandboxes of all attempts: made in a moment, never lost, and cleaned up after the dead."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, Self

from cleveragents.domain.budget import positive_s
from cleveragents.domain.errors import RequestError, SandboxError, StoreError
from cleveragents.infrastructure.sandbox import sandbox_rows as rows
from cleveragents.infrastructure.sandbox.copies import CopyKind, WorktreeKind
from cleveragents.infrastructure.sandbox.erasure import erase
from cleveragents.infrastructure.sandbox.layers import Layers, Used
from cleveragents.infrastructure.sandbox.overlay import OverlayKind
from cleveragents.infrastructure.sandbox.owner import Owner, boot_of, this_machine
from cleveragents.infrastructure.sandbox.process_tree import end_commands_of
from cleveragents.infrastructure.sandbox.sandbox import Sandbox, SandboxInfo, SandboxState
from cleveragents.infrastructure.sandbox.workshop import Workshop
from cleveragents.infrastructure.stored_text import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from cleveragents.infrastructure.git.repository import GitRepository
    from cleveragents.infrastructure.sandbox.sandbox import Ground, PlanTree
    from cleveragents.infrastructure.store import Store

_log = logging.getLogger(__name__)

#: A process that was not heard of for so long loses its sandboxes.
LEASE_S: Final = 60.0
#: What plans stood on is kept so long for the next sandbox, although none needs it.
SPARE_S: Final = 86_400.0


class Kind(Protocol):
    """A way to give an attempt files of its own, below a folder that is given to it."""

    @property
    def name(self) -> str:
        """The word that users choose it by."""
        ...

    def why_not(self) -> str | None:
        """Return why it cannot be used here, or None."""
        ...

    def make(self, folder: Path, tree: PlanTree) -> Ground:
        """Put the files of a plan's tree there."""
        ...

    def open(self, folder: Path, tree: PlanTree) -> Ground:
        """Reach what was made and written, also by a process that is dead."""
        ...

    def remove(self, folder: Path) -> None:
        """Delete it all; absent is fine."""
        ...

    def close(self) -> None:
        """End what this process keeps running for it."""
        ...


class SandboxManager:
    """Gives each attempt a sandbox: the plan's tree as it was, its own writes, nothing else.

    Every method may be called from any thread of any process on one state folder and store.
    A sandbox is durable once `create` returns it, and belongs to this manager until it is
    released, the manager is closed, or its process is dead or silent beyond its lease.
    From the dead it is taken over by one collector at a time; the old owner, should it
    live after all, is refused from then on.
    Nothing that is not sealed is deleted, unless by `release(..., discard=True)`.
    """

    def __init__(  # noqa: PLR0913  # two things to work on, the rest by keyword
        self,
        repository: GitRepository,
        store: Store,
        *,
        tree_of: Callable[[str], PlanTree],
        kind: str = "auto",
        lease_s: float = LEASE_S,
        clock: Callable[[], float] = time.time,
        owner: Owner | None = None,
    ) -> None:
        self._repository = repository
        self._store = store
        self._tree_of = tree_of
        self._lease_s = positive_s("lease_s", lease_s)
        self._clock = clock
        self._root = repository.root
        self._owner = str(owner or Owner.here())
        self._workshop = Workshop(repository.home)
        self._layers = Layers(repository, self._workshop)
        self._folder = self._layers.home / "sandboxes"
        kinds: tuple[Kind, ...] = (
            OverlayKind(self._layers, self._folder / self._owner),
            WorktreeKind(repository, self._layers),
            CopyKind(self._layers),
        )
        self._kinds = {one.name: one for one in kinds}
        if kind != "auto" and kind not in self._kinds:
            names = ", ".join(f"`{name}`" for name in self._kinds)
            raise RequestError(f"`kind` must be `auto` or one of {names}, got {kind!r}")
        self._wanted = kind
        # Found out once, by the one thread of the workshop, and replaced as a whole.
        self._reasons: Mapping[str, str | None] | None = None
        self._stopping = threading.Event()
        self._store.write(rows.announce(self._owner, self._clock() + self._lease_s))
        # A daemon: it only renews a lease, which a process that ends need not keep.
        self._heart = threading.Thread(target=self._beat, name="ca-sandbox-heart", daemon=True)
        self._heart.start()

    # -- making and giving back ------------------------------------------------------------

    def available(self) -> dict[str, str | None]:
        """Return for each kind why it cannot be used here, or None; tried out once."""
        return dict(self._reasons or self._workshop.do(self._tried_out))

    def prepare(self, commit: str) -> None:
        """Make ready for sandboxes of a plan, right after the snapshot that it starts from.

        The empty folders of the user's tree are noted now: no commit holds them.
        """
        self._layers.prepare(commit)
        if self._chosen().name != "worktree":
            self._layers.snapshot(commit)

    def create(self, plan: str, node: str, attempt: int) -> Sandbox:
        """Return a sandbox with the plan's tree as it stands now; durable when it returns."""
        check_names(plan=plan, node=node)
        kind, tree = self._chosen(), self._tree_of(plan)
        sandbox_id = f"s-{secrets.token_hex(5)}"
        info = SandboxInfo(
            id=sandbox_id,
            plan=plan,
            node=node,
            attempt=attempt,
            kind=kind.name,
            tree=tree,
            folder=f"{self._owner}/{sandbox_id}",
            owner=self._owner,
            fence=1,
            state=SandboxState.LIVE,
            changeset=None,
            lease_until=0,
        )
        folder = self._folder / info.folder
        # First the folder, whose name tells its owner, then the row: dying in between leaves
        # a folder without a row, which the next collection removes.
        folder.mkdir(parents=True)
        try:
            with self._layers.in_use():
                ground = kind.make(folder, tree)
                self._store.write(rows.add(info, self._clock()))
        except Exception:
            # Not after Ctrl-C: the row may be on its way, and must not stand for nothing.
            self._remove(info)
            raise
        return self._sandbox(info, ground)

    def open(self, sandbox_id: str) -> Sandbox:
        """Return a sandbox of ours again, or take over one of a dead process."""
        return self._opened(self._held(sandbox_id))

    def mark_sealed(self, sandbox_id: str, changeset_id: str) -> None:
        """Say that a changeset holds all that was done in a sandbox: it may be released."""
        check_names(changeset_id=changeset_id)
        self._store.write(rows.seal(sandbox_id, self._owner, changeset_id, self._clock()))

    def release(self, sandbox_id: str, *, discard: bool = False) -> None:
        """Delete a sandbox, also a dead process's; one that is not sealed only with `discard`."""
        self._held(sandbox_id)
        write = rows.release(sandbox_id, self._owner, self._clock(), discard=discard)
        info = self._store.write(write)
        self._remove(info)
        if info.tree.head != info.tree.base and info.tree not in self._used().kept:
            try:
                self._workshop.do(self._sweep_layers)
            except (OSError, SandboxError):
                _log.exception("What sandbox `%s` stood on is not deleted yet", info.id)

    def list(
        self, plan: str | None = None, *, released_too: bool = False
    ) -> tuple[SandboxInfo, ...]:
        """Return the sandboxes that are there, of all plans or of one, the oldest first."""
        with self._store.read() as connection:
            return rows.find_all(connection, plan=plan, kept_only=not released_too)

    # -- cleaning up after the dead --------------------------------------------------------

    def collect_garbage(self, salvage: Callable[[Sandbox], object]) -> tuple[SandboxInfo, ...]:
        """Take over what dead processes left, have it salvaged, and delete it; return what went.

        `salvage` stores the changes of a sandbox that is not sealed, and calls `mark_sealed`.
        One that it fails on is kept for the next collection; its error, or the first of several,
        is raised after all others were handled.
        """
        collected, errors = [], []
        for info in self._taken_from_the_dead():
            try:
                if info.state is SandboxState.LIVE:
                    salvage(self._opened(info))
                self.release(info.id)
                collected.append(info.id)
            except BaseException as error:
                self._store.write(rows.leave(info.id, self._owner))
                if not isinstance(error, Exception):
                    raise
                errors.append(error)
        self._workshop.do(self._sweep)
        if errors:
            raise errors[0]
        with self._store.read() as connection:
            return tuple(rows.find(connection, one) for one in collected)

    # -- living and ending -----------------------------------------------------------------

    def close(self) -> None:
        """Leave all sandboxes, with what was written, to whoever opens or collects them."""
        self._stopping.set()
        self._heart.join()
        for kind in self._kinds.values():
            kind.close()
        self._workshop.close()
        with suppress(OSError):  # there was never a sandbox, or one is left to others
            (self._folder / self._owner).rmdir()
        self._store.write(rows.bury(self._owner))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- inside ----------------------------------------------------------------------------

    def _chosen(self) -> Kind:
        if self._wanted == "auto":
            names = ["overlay", "worktree" if (self._root / ".git").exists() else "copy"]
            reasons = self.available()
            return self._kinds[next(name for name in names if reasons[name] is None)]
        kind = self._kinds[self._wanted]
        if self._wanted == "overlay" and (why := self.available()["overlay"]) is not None:
            raise SandboxError(
                f"Sandboxes of kind `overlay` are not available here: {why}",
                code="CA5002",
                facts={"kind": self._wanted, "why": why},
                hint="Choose another kind: `auto`, `worktree` or `copy`",
            )
        return kind

    def _tried_out(self) -> Mapping[str, str | None]:
        if self._reasons is None:
            self._reasons = {name: kind.why_not() for name, kind in self._kinds.items()}
        return self._reasons

    def _held(self, sandbox_id: str) -> SandboxInfo:
        """Return what is known of a sandbox that is ours, or is now: its owner was dead."""
        with self._store.read() as connection:
            info = rows.find(connection, sandbox_id)
        if info.state is SandboxState.RELEASED:
            raise rows.not_ours(info)
        if info.owner != self._owner and not (
            self._is_dead(info.owner) and self._store.write(rows.take(info, self._owner))
        ):
            raise rows.not_ours(info)
        return info

    def _opened(self, info: SandboxInfo) -> Sandbox:
        folder = self._folder / info.folder
        if not folder.is_dir():
            raise SandboxError(
                f"The folder of sandbox `{info.id}` was deleted by another program",
                code="CA5004",
                facts={"sandbox": info.id, "folder": folder},
                hint=f"Its work is lost: call `release({info.id!r}, discard=True)`",
            )
        return self._sandbox(info, self._kinds[info.kind].open(folder, info.tree))

    def _sandbox(self, info: SandboxInfo, ground: Ground) -> Sandbox:
        return Sandbox(
            id=info.id,
            plan=info.plan,
            node=info.node,
            attempt=info.attempt,
            kind=info.kind,
            commit=info.tree.head,
            root=self._root,
            ground=ground,
            torn=boot_of(info.folder) != boot_of(this_machine()),
        )

    def _remove(self, info: SandboxInfo) -> None:
        try:
            self._kinds[info.kind].remove(self._folder / info.folder)
        except (OSError, SandboxError):
            # It is given up already; what cannot be deleted now is found by a collection.
            _log.exception("The folder of sandbox `%s` is not deleted yet", info.id)

    def _is_dead(self, owner: str) -> bool:
        """Tell whether an owner has no claim any more; one that is found dead never has again."""
        with self._store.read() as connection:
            until = rows.owners(connection).get(owner)
        if until is None:
            return True
        known = Owner.parse(owner)
        if known is not None and known.is_gone:
            # First, so that nothing writes into what is taken over from the buried.
            end_commands_of(known)
            return self._store.write(rows.bury(owner))
        return until < self._clock() and self._store.write(rows.bury(owner, until))

    def _taken_from_the_dead(self) -> Iterator[SandboxInfo]:
        with self._store.read() as connection:
            kept = rows.find_all(connection, kept_only=True)
        dead = {one for one in {info.owner for info in kept} - {self._owner} if self._is_dead(one)}
        for info in kept:
            if info.owner in dead and self._store.write(rows.take(info, self._owner)):
                yield info

    def _sweep(self) -> None:
        """Delete folders of dead owners that no row keeps, and what was left half-made."""
        self._sweep_layers()
        self._sweep_folders()

    def _sweep_layers(self) -> None:
        self._layers.sweep(self._used, self._clock() - SPARE_S)

    def _used(self) -> Used:
        with self._store.read() as connection:
            kept = rows.find_all(connection, kept_only=True)
            newest = rows.newest_trees(connection)
        return Used(tuple(info.tree for info in kept), newest)

    def _sweep_folders(self) -> None:
        for place in self._folder.iterdir() if self._folder.is_dir() else ():
            if place.name == self._owner or not self._is_dead(place.name):
                continue
            # Read after the owner's death: from then on it adds no row.
            with self._store.read() as connection:
                kept = {info.folder for info in rows.find_all(connection, kept_only=True)}
            left = [one for one in place.iterdir() if f"{place.name}/{one.name}" not in kept]
            try:
                for folder in left:
                    erase(folder)
                with suppress(OSError):
                    place.rmdir()
            except OSError:
                _log.exception("What `%s` left is not deleted yet", place.name)

    def _beat(self) -> None:
        while not self._stopping.wait(self._lease_s / 4):
            try:
                self._store.write(rows.renew(self._owner, self._clock() + self._lease_s))
            except StoreError:
                # The store tells every caller of its trouble; the next beat tries again.
                _log.exception("The lease of `%s` was not renewed", self._owner)
