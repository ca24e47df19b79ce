"""Search files by a pattern of Python; run by the tool `search_text` as a program of its own.

A process, because a pattern can take for ever, and no thread could end it. What to do comes as
JSON on standard input; matches leave as `path NUL number : line`, as ripgrep prints them.
Whoever runs it adds the call of `main`. It uses the standard library alone: in the sandbox
there may be nothing else.
"""

from __future__ import annotations

import json
import os
import re
import sys

LINE_BYTES_MAX = 10_000


def search(asked: dict[str, str | bool | int], out: list[bytes]) -> None:
    """Add the matches below a folder, in the order of the paths, up to a number of them."""
    flags = re.IGNORECASE if asked["ignore_case"] else 0
    wanted = re.compile(os.fsencode(str(asked["pattern"])), flags)
    for folder, folders, names in os.walk(os.fsencode(str(asked["folder"]))):
        folders[:] = sorted(name for name in folders if name != b".git")
        for name in sorted(names):
            path = os.path.join(folder, name)  # noqa: PTH118  # a path of bytes
            if os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114  # as above
                out += _matches(wanted, path)
            if len(out) > int(asked["matches_max"]):
                return


def _matches(wanted: re.Pattern[bytes], path: bytes) -> list[bytes]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # a path of bytes
            data = file.read()
    except OSError:
        return []  # gone meanwhile, or not for us
    if b"\0" in data:
        return []
    return [
        b"%s\0%d:%s\n" % (path, number, line)
        for number, line in enumerate(data.split(b"\n"), 1)
        if wanted.search(line[:LINE_BYTES_MAX])
    ]


def main() -> int:
    """Search, print, and end as ripgrep does: 0 with matches, 1 without, 2 for a bad pattern."""
    found: list[bytes] = []
    try:
        search(json.load(sys.stdin), found)
    except re.error as error:
        os.write(2, str(error).encode())
        return 2
    sys.stdout.buffer.writelines(found)
    return 0 if found else 1
