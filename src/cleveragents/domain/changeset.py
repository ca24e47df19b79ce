"""One file operation as a value, and the changeset that collects them."""

from __future__ import annotations

import hashlib
import stat
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict

from cleveragents.domain.errors import PlanError
from cleveragents.domain.paths import check_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

#: What a caller may hand in as the content of a file.
Data: TypeAlias = "Content | bytes | bytearray | memoryview | str"


class ChangeKind(StrEnum):
    """What a change does to its file."""

    CREATE = "create"
    MODIFY = "modify"
    DELETE = "delete"
    RENAME = "rename"
    MODE = "mode"


class FileMode(IntEnum):
    """The modes that git keeps; `FileMode(0o755)` and `FileMode(os.lstat(f).st_mode)` find theirs.

    The content of a symbolic link is its target.
    """

    REGULAR = 0o100644
    EXECUTABLE = 0o100755
    SYMLINK = 0o120000

    @classmethod
    def _missing_(cls, value: object) -> FileMode:
        if isinstance(value, int) and 0 <= value <= 0o177777:
            kind = stat.S_IFMT(value)
            if kind in {0, stat.S_IFREG}:
                return cls.EXECUTABLE if value & stat.S_IXUSR else cls.REGULAR
            if kind == stat.S_IFLNK:
                return cls.SYMLINK
        raise PlanError(
            f"A file mode must be that of a file or a symbolic link, got {value!r}",
            code="CA4003",
            hint="Pass a `FileMode`, or permissions such as 0o644 and 0o755",
        )


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file with their hash; two contents are equal when their hashes are."""

    # Neither shown nor compared: a repr must not spill a file, a comparison not read two.
    data: bytes = field(repr=False, compare=False)
    sha256: str = field(init=False)
    size: int = field(init=False)
    #: True when the bytes hold a NUL; such a file has no lines.
    binary: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha256", hashlib.sha256(self.data).hexdigest())
        object.__setattr__(self, "size", len(self.data))
        object.__setattr__(self, "binary", b"\0" in self.data)

    @classmethod
    def of(cls, data: Data) -> Content:
        """Convert bytes, or text as UTF-8 with its line ends as they are (never translated).

        `surrogateescape` text gives back the bytes that it was read from.
        """
        if isinstance(data, Content):
            return data
        try:
            if isinstance(data, str):
                return cls(data.encode("utf-8", "surrogateescape"))
            if isinstance(data, bytes | bytearray | memoryview):
                return cls(bytes(data))
        except UnicodeEncodeError:
            raise _not_content("got text with lone surrogates") from None
        raise _not_content(f"got {type(data).__name__}")


class Provenance(TypedDict, total=False):
    """Who made a change, and when; what is left out is the changeset's, or the store's clock's."""

    actor: str | None
    node: str | None
    attempt: int | None
    tool_call: str | None
    at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEntry:
    """One operation on one file; an entry that breaks a rule is refused at birth with CA4003.

    Use the constructors: `create`, `modify`, `delete`, `rename`, `change_mode`.
    They take contents as `bytes`, `str` or `Content`, and who made the change as keywords.
    """

    kind: ChangeKind
    path: str
    old_path: str | None = None
    before: Content | None = None
    after: Content | None = None
    mode_before: FileMode | None = None
    mode_after: FileMode | None = None
    actor: str | None = None
    node: str | None = None
    attempt: int | None = None
    tool_call: str | None = None
    #: Seconds since the epoch; no part of what makes two changes the same.
    at: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_path(self.path)
        if self.old_path is not None:
            check_path(self.old_path)
        told = {name for name in _OPTIONAL if getattr(self, name) is not None}
        if told not in _SHAPES[self.kind]:
            needs = " or ".join(_listed(shape) for shape in _SHAPES[self.kind])
            raise _refused(f"must come with {needs} alone, got {_listed(told)}", self)
        if self.kind == ChangeKind.MODIFY and self.before == self.after:
            raise _refused("must change the content, got the same content twice", self)
        if self.kind == ChangeKind.RENAME and self.old_path == self.path:
            raise _refused("must change the path, got the same path twice", self)
        if self.mode_before is not None and self.mode_after is not None:
            _check_modes(self, self.mode_before, self.mode_after)

    @classmethod
    def create(
        cls,
        path: str,
        after: Data,
        mode: int = FileMode.REGULAR,
        **by: Unpack[Provenance],
    ) -> ChangeEntry:
        """Add a file that was not there."""
        return cls(
            kind=ChangeKind.CREATE,
            path=path,
            after=_content(after),
            mode_after=FileMode(mode),
            **by,
        )

    @classmethod
    def modify(cls, path: str, before: Data, after: Data, **by: Unpack[Provenance]) -> ChangeEntry:
        """Change the content of a file; its mode stays."""
        return cls(
            kind=ChangeKind.MODIFY,
            path=path,
            before=_content(before),
            after=_content(after),
            **by,
        )

    @classmethod
    def delete(
        cls,
        path: str,
        before: Data,
        mode: int = FileMode.REGULAR,
        **by: Unpack[Provenance],
    ) -> ChangeEntry:
        """Remove a file; its content is kept, so that the removal can be undone."""
        return cls(
            kind=ChangeKind.DELETE,
            path=path,
            before=_content(before),
            mode_before=FileMode(mode),
            **by,
        )

    @classmethod
    def rename(
        cls,
        old_path: str,
        path: str,
        before: Data | None = None,
        after: Data | None = None,
        **by: Unpack[Provenance],
    ) -> ChangeEntry:
        """Move a file, and edit it when `after` differs from `before`; both may be left out."""
        return cls(
            kind=ChangeKind.RENAME,
            path=path,
            old_path=old_path,
            before=_content(before),
            after=_content(before if after is None else after),
            **by,
        )

    @classmethod
    def change_mode(
        cls, path: str, before: int, after: int, **by: Unpack[Provenance]
    ) -> ChangeEntry:
        """Make a file executable, or no longer so; its content stays."""
        return cls(
            kind=ChangeKind.MODE,
            path=path,
            mode_before=FileMode(before),
            mode_after=FileMode(after),
            **by,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Changeset:
    """A snapshot of the changes of one attempt, in the order in which they were recorded."""

    id: str
    plan_id: str
    actor: str | None = None
    node: str | None = None
    attempt: int | None = None
    entries: tuple[ChangeEntry, ...] = ()
    finished: bool = False


_OPTIONAL: Final = ("old_path", "before", "after", "mode_before", "mode_after")
# Which of the optional fields each kind tells: all of one set, and nothing else.
_SHAPES: Final[Mapping[ChangeKind, tuple[set[str], ...]]] = {
    ChangeKind.CREATE: ({"after", "mode_after"},),
    ChangeKind.MODIFY: ({"before", "after"},),
    ChangeKind.DELETE: ({"before", "mode_before"},),
    ChangeKind.RENAME: ({"old_path"}, {"old_path", "before", "after"}),
    ChangeKind.MODE: ({"mode_before", "mode_after"},),
}


def _content(data: Data | None) -> Content | None:
    return None if data is None else Content.of(data)


def _check_modes(entry: ChangeEntry, before: FileMode, after: FileMode) -> None:
    if before is after:
        raise _refused(f"must change the mode, got {before:06o} twice", entry)
    if stat.S_IFMT(before) != stat.S_IFMT(after):
        raise _refused("cannot turn a file into a link; record a delete and a create", entry)


def _listed(names: set[str]) -> str:
    ordered = [name for name in _OPTIONAL if name in names]
    return " and ".join(f"`{name}`" for name in ordered) or "none"


def _refused(rule: str, entry: ChangeEntry) -> PlanError:
    return PlanError(
        f"A `{entry.kind}` of {entry.path!r} {rule}",
        code="CA4003",
        facts={"path": repr(entry.path), "kind": entry.kind, "rule": rule},
        hint="Record what the change did to the file, or nothing if it did nothing",
    )


def _not_content(got: str) -> PlanError:
    return PlanError(
        f"The content of a file must be bytes or text, {got}",
        code="CA4003",
        hint="Read the file in binary mode and pass its bytes",
    )
