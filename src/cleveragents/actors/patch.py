"""Unified diffs as values: read as git writes them, and put on the text of a file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cleveragents.actors.exact_edit import misfit
from cleveragents.domain.changeset import FileMode
from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_END: Final = "\\"
_ESCAPES: Final = {
    **dict(zip("abtnvfr", b"\a\b\t\n\v\f\r", strict=True)),
    '"': ord('"'),
    "\\": ord("\\"),
}
_QUOTED: Final = re.compile(r"\\([0-7]{3}|.)", re.DOTALL)


@dataclass(slots=True)
class Hunk:
    """One changed region: its lines before and after, and where it should be."""

    header: str
    #: Counted from 1, as the header says; a hint, because lines above may have come or gone.
    line: int
    old_count: int
    old: list[bytes] = field(default_factory=list)
    new: list[bytes] = field(default_factory=list)
    #: It says that the file does not end with a line end, before or after.
    tells_end: bool = False
    _last: str = ""

    def add(self, line: str) -> bool:
        """Take a line of the hunk; false when it is none."""
        mark, data = line[:1], line[1:].encode("utf-8", "surrogateescape") + b"\n"
        if mark == _NO_END:
            self._drop_end()
        elif mark in {" ", "-", "+", ""}:
            # A blank line is a line of context whose only blank somebody has cut off.
            if mark != "+":
                self.old.append(data)
            if mark != "-":
                self.new.append(data)
        else:
            return False
        self._last = mark
        return True

    def _drop_end(self) -> None:
        """Take the line end from the last line: that is how the file ends."""
        self.tells_end = True
        for lines, marks in ((self.old, " -"), (self.new, " +")):
            if self._last and self._last in marks and lines:
                lines[-1] = lines[-1].removesuffix(b"\n")


@dataclass(slots=True)
class FilePatch:
    """What a patch does to one file; `old` is None for a new file, `new` for one that goes."""

    old: str | None = None
    new: str | None = None
    mode_before: FileMode | None = None
    mode: FileMode | None = None
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The path by which it is told."""
        return self.new or self.old or ""

    @property
    def says_nothing(self) -> bool:
        """Whether nothing would become of it, so that it was not understood."""
        return not self.path or (self.old == self.new and not self.hunks and self.mode is None)


def read_patch(text: str) -> tuple[FilePatch, ...]:
    """Read a unified diff; CA5207 names the line that cannot be understood."""
    reader = _Reader()
    lines = text.removesuffix("\n").split("\n")
    for at, line in enumerate(lines):
        reader.take(line, lines[at + 1 : at + 3], at + 1)
    patches = tuple(reader.patches)
    if not patches or any(one.says_nothing for one in patches):
        what = "it names no file, or says nothing about one"
        raise _unreadable(what, "Write `--- a/PATH`, `+++ b/PATH`, and hunks")
    return patches


class _Reader:
    """Reads a patch line by line; counts of hunks are hints, because models miscount."""

    def __init__(self) -> None:
        self.patches: list[FilePatch] = []
        self._hunk: Hunk | None = None

    def take(self, line: str, next_lines: Sequence[str], number: int) -> None:
        """Take the next line, with a look at those that follow."""
        if line.startswith("diff --git "):
            name = _named_twice(line.removeprefix("diff --git "))
            self._begin(FilePatch(name, name))
        elif self._starts_file(line, next_lines):
            if not self.patches or self.patches[-1].hunks:
                self._begin(FilePatch())
            self.patches[-1].old = _path(line[4:], "a/")
        elif line.startswith("@@"):
            self._begin_hunk(line, number)
        elif self._hunk is not None:
            self._continue_hunk(line, number)
        elif self.patches:
            self._read_header(line)

    def _begin(self, patch: FilePatch) -> None:
        self._hunk = None
        self.patches.append(patch)

    def _starts_file(self, line: str, next_lines: Sequence[str]) -> bool:
        if not line.startswith("--- ") or not next_lines or not next_lines[0].startswith("+++ "):
            return False
        # In a hunk that is not full yet, it is a line that goes: `-- ` behind its mark.
        return self._hunk is None or len(self._hunk.old) >= self._hunk.old_count

    def _begin_hunk(self, line: str, number: int) -> None:
        found = _HUNK.match(line)
        if found is None or not self.patches:
            raise _unreadable(
                f"line {number} is no header of a hunk: {line!r:.80}",
                "Write `@@ -12,3 +12,4 @@` below the names of the file",
            )
        self._hunk = Hunk(line, int(found[1]), int(found[2] or 1))
        self.patches[-1].hunks.append(self._hunk)

    def _continue_hunk(self, line: str, number: int) -> None:
        hunk = self._hunk
        assert hunk is not None, "the caller has looked"
        if line == "" and len(hunk.old) >= hunk.old_count:
            return  # behind the hunk, not in it
        if not hunk.add(line):
            raise _unreadable(
                f"line {number} begins with {line[:1]!r}",
                "Each line of a hunk begins with a blank, `+`, `-` or `\\`",
            )

    def _read_header(self, line: str) -> None:
        patch = self.patches[-1]
        word, _, rest = line.partition(" ")
        if word == "+++":
            patch.new = _path(rest, "b/")
        elif line.startswith("rename from "):
            patch.old = _path(line.removeprefix("rename from "), "")
        elif line.startswith("rename to "):
            patch.new = _path(line.removeprefix("rename to "), "")
        elif line.startswith("new file mode "):
            patch.old, patch.mode = None, _mode(line)
        elif line.startswith("deleted file mode "):
            patch.new, patch.mode_before = None, _mode(line)
        elif line.startswith("new mode "):
            patch.mode = _mode(line)
        elif line.startswith("old mode "):
            patch.mode_before = _mode(line)
        elif line.startswith(("copy from ", "GIT binary patch", "Binary files ")):
            raise _unreadable(f"`{line:.60}` is not supported", "Write the file as a whole")


def _mode(line: str) -> FileMode:
    mode = FileMode(int(line.rsplit(" ", 1)[1], 8))
    if mode is FileMode.SYMLINK:
        raise _unreadable("it makes a symbolic link", "Make links by a command")
    return mode


def _path(text: str, prefix: str) -> str | None:
    """Return the path in a header: unquoted, without time and prefix; None for `/dev/null`."""
    name = text.partition("\t")[0]
    if name.startswith('"') and name.endswith('"'):
        data = _QUOTED.sub(_unescaped, name[1:-1]).encode("utf-8", "surrogateescape")
        name = data.decode("utf-8", "surrogateescape")
    return None if name == "/dev/null" else name.removeprefix(prefix)


def _named_twice(text: str) -> str | None:
    """Return the path of `a/PATH b/PATH`; None when the two differ: other lines tell them."""
    half = len(text) // 2
    first, second = _path(text[:half], "a/"), _path(text[half + 1 :], "b/")
    return first if first == second and text[half : half + 1] == " " else None


def _unescaped(found: re.Match[str]) -> str:
    said = found[1]
    byte = int(said, 8) & 0xFF if len(said) == 3 else _ESCAPES.get(said, ord(said) & 0xFF)
    return bytes([byte]).decode("ascii", "surrogateescape")


def _unreadable(what: str, hint: str) -> RequestError:
    return RequestError(f"The patch cannot be read: {what}", code="CA5207", hint=hint)


# -- putting it on -------------------------------------------------------------------------


def patched(patch: FilePatch, data: bytes) -> bytes:
    """Return a file with all hunks of its patch put on; CA5207 names the one that does not fit.

    Whoever writes a patch by hand forgets that a file does not end with a line end: it stays so.
    """
    forgotten = not data.endswith(b"\n") and not any(hunk.tells_end for hunk in patch.hunks)
    last = data.rpartition(b"\n")[2] + b"\n"
    lines = _lines(data)
    if forgotten and lines:
        lines[-1] = last
    windows = _needs_windows_ends(patch, data)
    done, shift = 0, 0
    for number, hunk in enumerate(patch.hunks, 1):
        old, new = (_with_ends(part, windows=windows) for part in (hunk.old, hunk.new))
        # Without old lines, the header names the line before.
        stated = hunk.line - (1 if old else 0)
        start = max(stated + shift, done)
        at = _place(lines, old, start, done)
        if at is None:
            raise _does_not_fit(patch.path, number, hunk, lines[start:], old)
        lines[at : at + len(old)] = new
        done = at + len(new)
        shift = at - stated + len(new) - len(old)
    keeps_last = bool(data) and forgotten and lines[-1:] == [last]
    return b"".join(lines).removesuffix(b"\n" if keeps_last else b"")


def _lines(data: bytes) -> list[bytes]:
    """Cut at line feeds alone."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def _needs_windows_ends(patch: FilePatch, data: bytes) -> bool:
    """Say whether all lines of a file end as on Windows, and none of its patch does."""
    ends = data.count(b"\n")
    told = (line for hunk in patch.hunks for line in (*hunk.old, *hunk.new))
    return 0 < ends == data.count(b"\r\n") and not any(line.endswith(b"\r\n") for line in told)


def _with_ends(lines: list[bytes], *, windows: bool) -> list[bytes]:
    return [line.replace(b"\n", b"\r\n") for line in lines] if windows else lines


def _place(lines: list[bytes], old: list[bytes], start: int, first: int) -> int | None:
    """Return the place nearest to where it should be; above `first` nothing is changed again."""
    last = len(lines) - len(old)
    if not old:
        return min(start, len(lines))
    for distance in range(max(last - start, start - first, 0) + 1):
        for at in (start + distance, start - distance):
            if first <= at <= last and lines[at : at + len(old)] == old:
                return at
    return None


def _does_not_fit(
    path: str, number: int, hunk: Hunk, there: list[bytes], old: list[bytes]
) -> RequestError:
    differs = next((at for at, line in enumerate(old) if line not in there[at : at + 1]), 0)
    wanted, got = (
        lines[differs].decode("utf-8", "replace").rstrip("\r\n") if differs < len(lines) else None
        for lines in (old, there)
    )
    found = "the file ends there" if got is None else f"found {got!r:.120}"
    return misfit(
        path,
        f"Hunk {number} of {path!r} ({hunk.header}) does not fit: at line {hunk.line + differs}"
        f" expected {wanted!r:.120}, {found}",
        hint="Read the file again; nothing of the patch was applied",
    )
