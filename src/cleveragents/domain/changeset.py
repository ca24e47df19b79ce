"""One file operation as a value, and the changeset that collects them."""

from __future__ import annotations

import hashlib
import stat
import sys
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict, cast

from cleveragents.domain.errors import PlanError
from cleveragents.domain.paths import check_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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
        if type(value) is int and 0 <= value <= 0o177777:
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
        # A `bytearray` would have a hash too, until somebody changes it.
        if not isinstance(self.data, bytes):
            raise _not_content("bytes", f"got {type(self.data).__name__}")
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
            raise _not_content("bytes or text", "got text with lone surrogates") from None
        raise _not_content("bytes or text", f"got {type(data).__name__}")


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

    So is a value of the wrong kind: whoever is handed an entry can rely on its types.
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
        for name in _RULES:
            _check_kind(name, getattr(self, name))
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


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_moment(value: object) -> bool:
    # Compared, not converted: a whole number may be too large to be a float at all.
    return type(value) in {int, float} and abs(cast("float", value)) <= sys.float_info.max


def _a(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


# What each field must be if it is told, and how to come by it; paths have a module of their own.
_RULES: Final[Mapping[str, tuple[str, Callable[[object], bool], str]]] = {
    "kind": ("a `ChangeKind`", _a(ChangeKind), "Use `ChangeEntry.create` and its sisters"),
    **dict.fromkeys(
        ("before", "after"), ("a `Content`", _a(Content), "Wrap the bytes: `Content.of(data)`")
    ),
    **dict.fromkeys(
        ("mode_before", "mode_after"),
        ("a `FileMode`", _a(FileMode), "Find the mode that git keeps: `FileMode(0o644)`"),
    ),
    **dict.fromkeys(
        ("actor", "node", "tool_call"), ("a text", _a(str), "Pass a name, or leave it out")
    ),
    "attempt": ("a whole number from 0", _is_count, "Pass the number of the try, or leave it out"),
    "at": ("a number of seconds", _is_moment, "Pass seconds since the epoch, or leave it out"),
}


def _check_kind(name: str, value: object) -> None:
    rule, holds, hint = _RULES[name]
    if holds(value) or (value is None and name != "kind"):
        return
    # A content is never shown, also one in the wrong wrapping.
    got = type(value).__name__ if name in {"before", "after"} else f"{value!r:.80}"
    raise PlanError(
        f"`{name}` of a change must be {rule}, got {got}",
        code="CA4003",
        facts={"field": name, "rule": rule},
        hint=hint,
    )


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


def _not_content(rule: str, got: str) -> PlanError:
    return PlanError(
        f"The content of a file must be {rule}, {got}",
        code="CA4003",
        hint="Read the file in binary mode and pass its bytes",
    )
