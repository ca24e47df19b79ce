"""The text files of a tree: what git would show, and nothing outside the root."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.domain.fragment import is_relative

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pathspec import RegexPattern

    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["FILE_BYTES_MAX", "locate", "read_text", "walk"]

#: Larger files are data or generated; no model reads them.
FILE_BYTES_MAX: Final = 1_000_000
#: Where git looks for a NUL byte to call a file binary.
_BINARY_PROBE_BYTES: Final = 8_000
# Never wait for a pipe's writer, and never follow a link that replaced the file meanwhile.
_OPEN_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
#: The group that pathspec's expressions put around the slash that ends a folder.
_FOLDER_MARK: Final = "ps_d"


class _Rules(NamedTuple):
    """The `.gitignore` of one folder."""

    #: The folder with a slash at its end; empty for the root.
    folder: str
    #: The last pattern first, because the last one that matches decides.
    patterns: tuple[RegexPattern, ...]


def walk(root: Path, stop: StopSignal) -> Iterator[str]:
    """Yield the relative paths of the files that no `.gitignore` in the tree hides.

    Each folder comes in the order of its names, so the same tree gives the same order.
    Links are not followed, `.git` is skipped, and folders that cannot be read are empty.
    """
    yield from _walk(root, "", (), stop)


def _walk(root: Path, folder: str, above: tuple[_Rules, ...], stop: StopSignal) -> Iterator[str]:
    stop.raise_if_stopped()
    try:
        with os.scandir(root / folder) as entries:
            kinds = {
                entry.name: entry.is_dir(follow_symlinks=False)
                for entry in entries
                if not entry.is_symlink() and entry.name != ".git"
            }
    except OSError:  # vanished, or not ours to read
        return
    rules = above
    if kinds.get(".gitignore") is False and (own := _rules_of(root, folder)):
        rules = (own, *above)
    for name, is_folder in sorted(kinds.items()):
        path = folder + name
        if not is_relative(path):
            continue
        if is_folder:
            if not _is_ignored(f"{path}/", rules):
                yield from _walk(root, f"{path}/", rules, stop)
        elif not _is_ignored(path, rules):
            yield path


def _rules_of(root: Path, folder: str) -> _Rules | None:
    text = read_text(root / f"{folder}.gitignore")
    if text is None:
        return None
    return _Rules(folder, tuple(_patterns(reversed(text.split("\n")))))


def _patterns(lines: Iterable[str]) -> Iterator[RegexPattern]:
    # Imported here: it takes longer to load than everything else a strategy needs.
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    for line in lines:
        # A line that is no pattern hides nothing, as in git; the others hold.
        with suppress(ValueError, re.error):
            pattern = GitIgnoreSpecPattern(line)
            if pattern.include is not None:
                yield pattern


def _is_ignored(path: str, rules: tuple[_Rules, ...]) -> bool:
    """Ask the deepest rules first: the first pattern that speaks of the path decides."""
    for folder, patterns in rules:
        inside = path[len(folder) :]
        for pattern in patterns:
            found = pattern.match_file(inside)
            if found is not None and _speaks_of(found.match, inside):
                return pattern.include is True
    return False


def _speaks_of(match: re.Match[str], path: str) -> bool:
    """Say whether a pattern matches the path itself, not only a folder that the path lies in.

    The folders were asked about when the walk came to them.
    """
    is_folder = path.endswith("/")
    ends_path = match.end() == len(path)
    if match.groupdict().get(_FOLDER_MARK) is None:
        # `a/**` is the expression `a/`: it speaks of what is inside, not of the folder.
        return not (is_folder and ends_path)
    # `*/` and `**/` have no expression but the slash: they speak of every folder.
    is_slash = match.start() == match.start(_FOLDER_MARK)
    return is_folder and (ends_path or is_slash)


def locate(root: Path, path: str) -> str | None:
    """Return the one relative name of a file under the root, links resolved; None if outside."""
    try:
        home = root.resolve(strict=True)
        inside = (home / path).resolve(strict=True).relative_to(home).as_posix()
    except (OSError, ValueError, RuntimeError):  # missing, outside, not a name, a circle of links
        return None
    return inside if is_relative(inside) and ".git" not in inside.split("/") else None


def read_text(file: Path) -> str | None:
    """Return the lines joined by newlines; None for what is not a readable, small text file."""
    try:
        descriptor = os.open(file, _OPEN_FLAGS)
    except (OSError, ValueError):
        return None
    try:
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_BYTES_MAX:
                return None
            content = stream.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX or b"\0" in content[:_BINARY_PROBE_BYTES]:
            return None
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
