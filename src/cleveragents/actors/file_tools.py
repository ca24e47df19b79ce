"""Tools that read and change files of the attempt; paths are relative to the tree."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Final

from cleveragents.actors.allowed_writes import refuse_forbidden
from cleveragents.actors.exact_edit import edited
from cleveragents.actors.tool import Parameter, Permission, Tool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cleveragents.actors.tool import ToolCall

TEXT_CHARS_MAX: Final = 2_000_000
_LINE_CHARS_MAX: Final = 2_000
_LINES_DEFAULT: Final = 1_000
_NAMES_MAX: Final = 2_000

PATH: Final = Parameter(name="path", about="the file, such as `src/app.py`", least=1, most=4_096)
_FOLDER: Final = Parameter(
    name="folder", about="the folder to look in, `.` is all", required=False, default=".", least=1
)


def _read(call: ToolCall) -> str:
    path, first, most = call["path"], call["first_line"], call["lines_max"]
    data = call.attempt.files.read(path)
    if b"\0" in data:
        return f"`{path}` is a binary file of {len(data)} bytes: it has no lines to show"
    text = data.decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n") if text else []
    shown = [
        f"{number:>6}\t{_cut(line)}"
        for number, line in enumerate(lines[first - 1 : first - 1 + most], first)
    ]
    left = len(lines) - (first - 1 + len(shown))
    notes = []
    if not shown:
        notes.append(f"[`{path}` has {len(lines)} lines, none from line {first}]")
    if left > 0 and shown:
        notes.append(f"[{left} more lines: go on with `first_line` {first + len(shown)}]")
    if "\ufffd" in text and not _is_utf8(data):
        notes.append("[the file is not UTF-8: each byte that is not is shown as \ufffd]")
    return "\n".join((*shown, *notes))


def _cut(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= _LINE_CHARS_MAX else line[:_LINE_CHARS_MAX] + "… [line cut]"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _list(call: ToolCall) -> str:
    folder, pattern = posixpath.normpath(call["folder"]), call["pattern"]
    if pattern is None:
        return _listed(call.attempt.files.names(folder))
    return _listed(
        path
        for path in call.attempt.files.walk()
        if (inside := inner_path(path, folder)) is not None and fnmatchcase(inside, pattern)
    )


def inner_path(path: str, folder: str) -> str | None:
    """Return a path as seen from a folder, None when it is not in it."""
    if folder == ".":
        return path
    return path[len(folder) + 1 :] if path.startswith(f"{folder}/") else None


def _listed(names: Iterable[str]) -> str:
    found = list(islice(names, _NAMES_MAX + 1))
    note = [f"[more than {_NAMES_MAX}: look into a folder, or give a pattern]"]
    # A name may hold any byte, and a line end in it would make two names of it.
    shown = [_printable(name) for name in found[:_NAMES_MAX]]
    return "\n".join(shown + note[: len(found) > _NAMES_MAX]) or "[nothing]"


def _printable(name: str) -> str:
    return name if name.isprintable() else ascii(name)


def _write(call: ToolCall) -> str:
    data = call["text"].encode("utf-8", "surrogateescape")
    refuse_forbidden(call, call["path"])
    call.stop.raise_if_stopped()
    call.attempt.files.write(call["path"], data, tool_call=call.id)
    return f"Wrote {len(data)} bytes to `{call['path']}`"


def _edit(call: ToolCall) -> str:
    files, path = call.attempt.files, call["path"]
    refuse_forbidden(call, path)
    before = files.read(path)
    after = edited(path, before, call["old"], call["new"], everywhere=call["everywhere"])
    call.stop.raise_if_stopped()
    files.write(path, after, tool_call=call.id)
    return f"Edited `{path}`: {len(before)} bytes became {len(after)}"


READ_FILE: Final = Tool(
    name="read_file",
    description="Show the lines of a text file with their numbers, or a part of them.",
    run=_read,
    parameters=(
        PATH,
        Parameter(
            name="first_line",
            about="where to begin",
            kind="whole",
            required=False,
            default=1,
            least=1,
        ),
        Parameter(
            name="lines_max",
            about="how many lines to show",
            kind="whole",
            required=False,
            default=_LINES_DEFAULT,
            least=1,
            most=10_000,
        ),
    ),
)

LIST_FILES: Final = Tool(
    name="list_files",
    description=(
        "List what a folder holds (folders end in `/`), or, with a pattern such as `*.py`,"
        " all files below it whose paths match; `*` matches `/` too."
    ),
    run=_list,
    parameters=(
        _FOLDER,
        Parameter(name="pattern", about="which files to list", required=False, least=1, most=1_000),
    ),
)

WRITE_FILE: Final = Tool(
    name="write_file",
    description="Make a file with this text, or replace all that it holds.",
    run=_write,
    parameters=(
        PATH,
        Parameter(name="text", about="the whole content", most=TEXT_CHARS_MAX, least=0),
    ),
    permission=Permission.WRITE,
)

EDIT_FILE: Final = Tool(
    name="edit_file",
    description="Replace a text that stands in a file exactly once, blanks and line ends included.",
    run=_edit,
    parameters=(
        PATH,
        Parameter(name="old", about="the text to replace", least=1, most=TEXT_CHARS_MAX),
        Parameter(name="new", about="what to put there", least=0, most=TEXT_CHARS_MAX),
        Parameter(
            name="everywhere",
            about="replace it wherever it stands",
            kind="flag",
            required=False,
            default=False,
        ),
    ),
    permission=Permission.WRITE,
)
