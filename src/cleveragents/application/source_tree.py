"""The text files of a tree: what git would show, and nothing outside the root."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.domain.fragment import is_relative

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pathspec import RegexPattern

    from cleveragents.domain.stop_signal import StopSignal

__all__ = [
    "FILE_BYTES_MAX",
    "OPEN_FLAGS",
    "Rules",
    "is_ignored",
    "locate",
    "read_text",
    "rules_above",
    "rules_of",
    "text_of",
    "walk",
]

#: Larger files are data or generated; no model reads them.
FILE_BYTES_MAX: Final = 1_000_000
#: Longer names are no files, and to resolve one takes time in the square of its length.
_PATH_CHARS_MAX: Final = 4096
#: Where git looks for a NUL byte to call a file binary.
_BINARY_PROBE_BYTES: Final = 8_000
# Never wait for a pipe's writer, and never follow a link that replaced the file meanwhile.
OPEN_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
#: How pathspec's expressions write a star.
_STAR: Final = "[^/]*"
#: The group that pathspec's expressions put around the slash that ends a folder.
_FOLDER_MARK: Final = "ps_d"


class Rules(NamedTuple):
    """The `.gitignore` of one folder, or what the repository excludes."""

    #: From the top of the repository, with a slash at its end; empty for the top.
    folder: str
    #: The last pattern first, because the last one that matches decides.
    patterns: tuple[RegexPattern, ...]


def walk(root: Path, stop: StopSignal) -> Iterator[str]:
    """Yield the relative paths of the files that the repository does not ignore.

    The `.gitignore` files count from the top of the repository on, and so does its
    `info/exclude`. Whether the root itself is ignored does not: who names it wants it.
    Each folder comes in the order of its names, so the same tree gives the same order.
    Links are not followed, `.git` is skipped, and folders that cannot be read are empty.
    """
    home = Path(os.path.realpath(root))
    top, rules = rules_above(home)
    base = _inside(top, home)
    for path in _walk(top, base, rules, stop):
        yield path.removeprefix(base)


def rules_above(home: Path) -> tuple[Path, tuple[Rules, ...]]:
    """Return the top of the repository, or home without one, and the rules above home."""
    gitignores: list[Path] = []
    for top in (home, *home.parents):
        git = _git_folder(top)
        if git is not None:
            # Deepest first; the excludes come last, and git follows links to them alone.
            exclude = rules_of("", Path(os.path.realpath(git / "info/exclude")))
            rules = [rules_of(_inside(top, file.parent), file) for file in gitignores]
            return top, tuple(filter(None, [*rules, exclude]))
        if top.parent != top:
            gitignores.append(top.parent / ".gitignore")
    return home, ()


def _inside(top: Path, folder: Path) -> str:
    return "" if folder == top else f"{folder.relative_to(top).as_posix()}/"


def _git_folder(top: Path) -> Path | None:
    """Return where git keeps the repository with this top; of a work tree the shared part."""
    git = top / ".git"
    pointer = read_text(git)  # a work tree, or a submodule, has a file that points
    if pointer is not None:
        git = top / pointer.removeprefix("gitdir:").strip()
    shared = read_text(git / "commondir")
    if shared is not None:
        git /= shared.strip()
    return git if os.path.isfile(git / "HEAD") else None  # noqa: PTH113  # it never raises


def _walk(top: Path, folder: str, above: tuple[Rules, ...], stop: StopSignal) -> Iterator[str]:
    stop.raise_if_stopped()
    try:
        with os.scandir(top / folder) as entries:
            kinds = {
                entry.name: entry.is_dir(follow_symlinks=False)
                for entry in entries
                if not entry.is_symlink() and entry.name != ".git"
            }
    except OSError:  # vanished, or not ours to read
        return
    rules = above
    if kinds.get(".gitignore") is False:
        own = rules_of(folder, top / folder / ".gitignore")
        rules = above if own is None else (own, *above)
    for name, is_folder in sorted(kinds.items()):
        if not is_relative(name):
            continue
        path = folder + name
        if is_folder:
            if not is_ignored(f"{path}/", rules):
                yield from _walk(top, f"{path}/", rules, stop)
        elif not is_ignored(path, rules):
            yield path


def rules_of(folder: str, file: Path) -> Rules | None:
    """Return what a `.gitignore` says about its folder; None if it cannot be read."""
    text = read_text(file)
    if text is None:
        return None
    return Rules(folder, tuple(_patterns(reversed(text.split("\n")))))


def _patterns(lines: Iterable[str]) -> Iterator[RegexPattern]:
    # Imported here: it takes longer to load than everything else a strategy needs.
    from pathspec import RegexPattern
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    for line in lines:
        # A line that is no pattern hides nothing, as in git; the others hold.
        with suppress(ValueError, re.error):
            pattern = GitIgnoreSpecPattern(line)
            if pattern.regex is not None:
                yield RegexPattern(_in_one_go(pattern.regex), include=pattern.include)


def _in_one_go(regex: re.Pattern[str]) -> re.Pattern[str]:
    """Let each star of a name but the last end at the first place where what follows it fits.

    Nothing is lost by that, and to try all places would take for ever with many stars.
    """
    before, *after = regex.pattern.split(_STAR)
    parts = [before]
    for index, part in enumerate(after, 1):
        ends_name = index == len(after) or "/" in part.replace("[^/]", "")
        # In git no bracket matches a slash, and here none may.
        parts.append(_STAR + part if ends_name else f"(?>{_STAR}?{part.replace('[^', '[^/')})")
    return re.compile("".join(parts))


def is_ignored(path: str, rules: tuple[Rules, ...]) -> bool:
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
    if len(path) > _PATH_CHARS_MAX:
        return None
    try:
        home = root.resolve(strict=True)
        inside = (home / path).resolve(strict=True).relative_to(home).as_posix()
    except (OSError, ValueError, RuntimeError):  # missing, outside, not a name, a circle of links
        return None
    return inside if is_relative(inside) and ".git" not in inside.split("/") else None


def read_text(file: Path) -> str | None:
    """Return the lines joined by newlines; None for what is not a readable, small text file."""
    try:
        descriptor = os.open(file, OPEN_FLAGS)
    except (OSError, ValueError):
        return None
    try:
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_BYTES_MAX:
                return None
            content = stream.read(FILE_BYTES_MAX + 1)
    except OSError:
        return None
    return text_of(content)


def text_of(content: bytes) -> str | None:
    """Return the lines joined by newlines; None for what is binary, too long or not UTF-8."""
    if len(content) > FILE_BYTES_MAX or b"\0" in content[:_BINARY_PROBE_BYTES]:
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
