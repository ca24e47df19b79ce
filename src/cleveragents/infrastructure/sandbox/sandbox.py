"""A sandbox as a value: the files of one attempt, what it started from, and how to get there."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.sandbox.upper import touched_paths

if TYPE_CHECKING:
    from pathlib import Path

    from cleveragents.infrastructure.sandbox.command import Place


#: Folders of the user's tree that commands may read and run, and never change.
ENVIRONMENTS: Final = (".venv", "venv", "node_modules")


class SandboxState(StrEnum):
    """Live until its changes are in the store, sealed until its folder is gone, then released."""

    LIVE = "live"
    SEALED = "sealed"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class PlanTree:
    """Where a plan stands: the commit it started from, and the one it has come to."""

    base: str
    head: str


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """What the store knows of a sandbox."""

    id: str
    plan: str
    node: str
    attempt: int
    kind: str
    tree: PlanTree
    folder: str
    owner: str
    fence: int
    state: SandboxState
    changeset: str | None
    #: Seconds since the epoch; 0 when its owner has given it up or was declared dead.
    lease_until: float


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a kind of sandbox has put the files.

    `path` is how our process reaches them, `inner` where a command finds them that runs with
    the prefix `enter`. Of an overlay, `upper` holds what was written, above `lowers`.
    """

    path: Path
    inner: Path
    enter: tuple[str, ...] = ()
    upper: Path | None = None
    lowers: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The files of one attempt, which nobody else sees; `commit` is what it started from."""

    id: str
    plan: str
    node: str
    attempt: int
    kind: str
    commit: str
    #: The user's tree, which a command finds the sandbox in place of.
    root: Path
    ground: Ground = field(repr=False)
    #: The machine went down while it was live: what was written last may be torn.
    torn: bool = False

    @property
    def path(self) -> Path:
        """The folder of the files, as our process reaches it."""
        return self.ground.path

    @property
    def place(self) -> Place:
        """Where commands run."""
        from cleveragents.infrastructure.sandbox.command import Place

        return Place(
            path=self.ground.inner,
            root=self.root,
            enter=self.ground.enter,
            shared=tuple(name for name in ENVIRONMENTS if self._borrows(name)),
        )

    def _borrows(self, name: str) -> bool:
        """Say whether the user's tree has an environment that is no part of the sandbox."""
        own = self.path / name
        # An empty folder is what the last command left where it saw the user's.
        return (self.root / name).is_dir() and not (own.is_dir() and any(own.iterdir()))

    def check(self) -> None:
        """Refuse, with CA5004, when the files cannot be reached any more."""
        try:
            there = os.stat(self.path).st_dev  # noqa: PTH116  # `Path.stat` costs twice as much
            # A mount point without its mount is an empty folder of the disk around it.
            lost = self.ground.upper is not None and there == self.ground.upper.stat().st_dev
        except OSError:
            lost = True
        if lost:
            raise SandboxError(
                f"The files of sandbox `{self.id}` cannot be reached any more",
                code="CA5004",
                facts={"sandbox": self.id, "plan": self.plan, "node": self.node},
                hint=f"Nothing that was written is lost: call `open({self.id!r})` to go on",
            )

    def touched(self) -> tuple[str, ...] | None:
        """Return every file path that may differ from the start, sorted; None says: compare all."""
        self.check()
        if self.ground.upper is None:
            return None
        return touched_paths(self.ground.upper, self.ground.lowers)
