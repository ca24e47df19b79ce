"""What an apply is asked for and what it answers, as values."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from cleveragents.domain.changeset import FileMode
from cleveragents.domain.errors import PlanError
from cleveragents.domain.paths import check_path

if TYPE_CHECKING:
    import os


@dataclass(frozen=True, slots=True)
class Signature:
    """What tells cheaply whether a file is still the one that was looked at."""

    mode: int
    size: int
    mtime_ns: int
    inode: int
    uid: int
    gid: int

    @classmethod
    def of(cls, status: os.stat_result) -> Signature:
        """Take the signature from what the file system says."""
        return cls(
            status.st_mode,
            status.st_size,
            status.st_mtime_ns,
            status.st_ino,
            status.st_uid,
            status.st_gid,
        )

    def plain(self) -> tuple[int, ...]:
        """Return what the constructor takes."""
        return (self.mode, self.size, self.mtime_ns, self.inode, self.uid, self.gid)

    @property
    def kind(self) -> Literal["regular", "symlink"]:
        """Whether it is a file or a symbolic link."""
        return "symlink" if stat.S_ISLNK(self.mode) else "regular"

    def has_content_of(self, status: os.stat_result) -> bool:
        """Say whether a file is this one with its content untouched, whatever its rights."""
        return (self.inode, self.size, self.mtime_ns) == (
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
        )


@dataclass(frozen=True, slots=True)
class Target:
    """One path and what shall be there; one that breaks a rule is refused at birth with CA4003.

    `after` None removes the file; of a symbolic link it is where the link leads.
    `mode` None keeps what is there, or makes a plain file.
    `expected` is what the caller saw when it compared, None when nothing was there.
    """

    path: str
    after: bytes | None = field(repr=False)
    mode: FileMode | None
    expected: Signature | None

    def __post_init__(self) -> None:
        check_path(self.path)
        if self.after is None and self.expected is None:
            raise PlanError(
                f"A target must change something, got {self.path!r} that is not there "
                "and shall not be",
                code="CA4003",
                facts={"path": repr(self.path)},
                hint="Leave it out",
            )

    @property
    def is_symlink(self) -> bool:
        """Whether a symbolic link shall be there."""
        if self.mode is not None:
            return self.mode is FileMode.SYMLINK
        return self.expected is not None and self.expected.kind == "symlink"

    @property
    def owner(self) -> tuple[int, int] | None:
        """The owner and group of the file that gives way to one of its own kind."""
        seen = self.expected
        if seen is None or (seen.kind == "symlink") != self.is_symlink:
            return None
        return seen.uid, seen.gid

    @property
    def permissions(self) -> int:
        """The permission bits of the file; one of its kind lends its own, but for execution."""
        executable = self.mode is FileMode.EXECUTABLE
        if self.expected is None or self.expected.kind == "symlink":
            return 0o777 if executable else 0o666
        bits = stat.S_IMODE(self.expected.mode)
        if self.mode is None or executable == bool(bits & stat.S_IXUSR):
            return bits
        # Who may read it may run it, as git does it.
        return bits | (bits & 0o444) >> 2 if executable else bits & ~0o111


@dataclass(frozen=True, slots=True)
class Applied:
    """How many files an apply touched."""

    files: int
    created: int
    replaced: int
    deleted: int
    #: Old files that somebody wrote to after they were replaced: kept in `.cleveragents/rescued`.
    rescued: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recovered:
    """How an interrupted apply ended: the tree is entirely `new`, or entirely `old` again.

    One whose journal is damaged, or was not made here, is `left` where it is: `reason` says why.
    `note` is what the caller gave to the apply; it is empty if that died before it could write.
    `edited` are files that somebody changed after they were replaced, left as they are;
    `rescued` are old ones that somebody still wrote to, kept in `.cleveragents/rescued`.
    """

    apply_id: str
    outcome: Literal["new", "old", "left"]
    note: bytes
    edited: tuple[str, ...] = ()
    rescued: tuple[str, ...] = ()
    reason: str = ""
