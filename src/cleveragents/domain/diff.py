"""Net changes as text: git's own diff format, which `git apply` turns back into the files."""

from __future__ import annotations

import hashlib
import stat
import zlib
from base64 import b85encode
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING, Final, TypeAlias

from cleveragents.domain.net_change import NetChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cleveragents.domain.changeset import Content
    from cleveragents.domain.net_change import FileVersion

#: Above this many lines that may differ, they make one block: to match them is not linear.
MATCHED_LINES_MAX: Final = 20_000

#: A changed region: from and to in the old lines, from and to in the new lines.
_Block: TypeAlias = tuple[int, int, int, int]

_CONTEXT_LINES: Final = 3
_BINARY_BYTES_PER_LINE: Final = 52
_NO_OBJECT: Final = "0" * 40
_QUOTES: Final = {
    **{byte: f"\\{byte:03o}" for byte in (*range(0x20), *range(0x7F, 0x100))},
    **dict(zip(b'\a\b\t\n\v\f\r"\\', (f"\\{char}" for char in 'abtnvfr"\\'), strict=True)),
}


def unified_diff(changes: Iterable[NetChange]) -> str:
    """Return changes as one patch, binary files included.

    Bytes that are not UTF-8 are kept by `surrogateescape`: write the text with
    `.encode("utf-8", "surrogateescape")`, and `git apply` gives exactly the files after.
    """
    parts = [part for change in changes for part in _split_type_change(change)]
    # What leaves a path comes before what arrives there, also when git reads the patch backwards.
    parts.sort(key=lambda part: (part.after is not None) + (part.before is None))
    patch = b"".join(piece for part in parts for piece in _patch(part))
    return patch.decode("utf-8", "surrogateescape")


def _split_type_change(change: NetChange) -> list[NetChange]:
    """Let a file that became a link, or a link a file, be deleted and created, as git does."""
    before, after = change.before, change.after
    modes = {version.mode for version in (before, after) if version and version.mode}
    if len({stat.S_IFMT(mode) for mode in modes}) == 2:
        return [NetChange(before, None), NetChange(None, after)]
    return [change]


def _patch(change: NetChange) -> Iterator[bytes]:
    before, after = change.before, change.after
    yield "".join(f"{line}\n" for line in _headers(change)).encode("ascii")
    old = before.content if before else None
    new = after.content if after else None
    if old == new:
        return
    same_mode = before and after and before.mode and before.mode == after.mode
    mode = f" {before.mode:06o}" if before and same_mode else ""
    yield f"index {_object_id(old)}..{_object_id(new)}{mode}\n".encode("ascii")
    if (old and old.binary) or (new and new.binary):
        yield b"GIT binary patch\n"
        # The second literal is the way back: `git apply --reverse` needs it.
        yield from _literal(new)
        yield from _literal(old)
        return
    hunks = list(_hunks(_lines(old), _lines(new)))
    if hunks:
        yield f"--- {_label('a/', before)}\n+++ {_label('b/', after)}\n".encode("ascii")
        yield from hunks


def _headers(change: NetChange) -> Iterator[str]:
    before, after = change.before, change.after
    old_path = before.path if before else change.path
    yield f"diff --git {_quoted('a/' + old_path)} {_quoted('b/' + change.path)}"
    if after is None:
        yield f"deleted file mode {_mode(before)}"
    elif before is None:
        yield f"new file mode {_mode(after)}"
    else:
        if before.mode != after.mode:
            yield f"old mode {_mode(before)}"
            yield f"new mode {_mode(after)}"
        if before.path != after.path:
            if before.content == after.content:
                yield "similarity index 100%"
            yield f"rename from {_quoted(before.path)}"
            yield f"rename to {_quoted(after.path)}"


def _mode(version: FileVersion | None) -> str:
    assert version is not None, "only a file has a mode"
    assert version.mode is not None, "an entry that creates, deletes or changes a mode tells it"
    return f"{version.mode:06o}"


def _label(prefix: str, version: FileVersion | None) -> str:
    if version is None:
        return "/dev/null"
    name = _quoted(prefix + version.path)
    # Without the tab, what follows a space would be read as a time.
    return f"{name}\t" if " " in name else name


def _quoted(path: str) -> str:
    """Write a path as git does: plain, or in C quotes with every unusual byte escaped."""
    data = path.encode("utf-8", "surrogateescape")
    text = "".join(_QUOTES.get(byte) or chr(byte) for byte in data)
    # A space at the end is not unusual to git, but git itself cannot read it without quotes.
    return path if text == path and path[-1] != " " else f'"{text}"'


def _object_id(content: Content | None) -> str:
    if content is None:
        return _NO_OBJECT
    blob = b"blob %d\0" % content.size + content.data
    return hashlib.sha1(blob, usedforsecurity=False).hexdigest()


def _literal(content: Content | None) -> Iterator[bytes]:
    data = content.data if content else b""
    yield b"literal %d\n" % len(data)
    packed = zlib.compress(data)
    for start in range(0, len(packed), _BINARY_BYTES_PER_LINE):
        chunk = packed[start : start + _BINARY_BYTES_PER_LINE]
        # The length comes first as one letter: A to Z for 1 to 26, a to z for 27 to 52.
        length = chr(len(chunk) + (64 if len(chunk) <= 26 else 70))
        yield length.encode("ascii") + b85encode(chunk, pad=True) + b"\n"
    yield b"\n"


def _lines(content: Content | None) -> list[bytes]:
    """Cut at line feeds alone; `splitlines` would cut at carriage returns too."""
    if content is None:
        return []
    *whole, rest = content.data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    group: list[_Block] = []
    for block in _changed_blocks(old, new):
        if group and block[0] - group[-1][1] > 2 * _CONTEXT_LINES:
            yield _hunk(old, new, group)
            group = []
        group.append(block)
    if group:
        yield _hunk(old, new, group)


def _changed_blocks(old: Sequence[bytes], new: Sequence[bytes]) -> list[_Block]:
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    if old_end + new_end - 2 * head > MATCHED_LINES_MAX:
        return [(head, old_end, head, new_end)]
    matcher = SequenceMatcher(None, old[head:old_end], new[head:new_end])
    return [
        (head + old_from, head + old_to, head + new_from, head + new_to)
        for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes()
        if tag != "equal"
    ]


def _shared(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _hunk(old: Sequence[bytes], new: Sequence[bytes], blocks: Sequence[_Block]) -> bytes:
    first, last = blocks[0], blocks[-1]
    lead = min(first[0], _CONTEXT_LINES)
    trail = min(len(old) - last[1], _CONTEXT_LINES)
    at = first[0] - lead
    old_range = _range(at, last[1] + trail)
    new_range = _range(first[2] - lead, last[3] + trail)
    pieces = [f"@@ -{old_range} +{new_range} @@\n".encode("ascii")]
    for old_from, old_to, new_from, new_to in blocks:
        pieces += _marked(b" ", old[at:old_from])
        pieces += _marked(b"-", old[old_from:old_to])
        pieces += _marked(b"+", new[new_from:new_to])
        at = old_to
    pieces += _marked(b" ", old[at : at + trail])
    return b"".join(pieces)


def _range(start: int, end: int) -> str:
    count = end - start
    # Lines count from 1; an empty range names the line before it.
    first = start + 1 if count else start
    return f"{first}" if count == 1 else f"{first},{count}"


def _marked(mark: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield mark + line
        if not line.endswith(b"\n"):
            yield b"\n\\ No newline at end of file\n"
