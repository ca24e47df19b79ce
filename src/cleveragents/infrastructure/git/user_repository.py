"""What the user's own repository says of their tree: what it ignores, and what it keeps anyway.

It is asked, never written: no index is refreshed, no daemon started, no hook run.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cleveragents.domain.paths import folders_of
from cleveragents.infrastructure.git.program import (
    UNARMED,
    configured,
    foreign_environment,
    refused,
    run_git,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

# Otherwise git could start a daemon that leaves files in the user's repository.
_ASKING: Final = {**configured(UNARMED), "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
# What git says of a folder that is in no repository, or of one that has no working tree.
_NONE_HERE: Final = (b"not a git repository", b"must be run in a work tree")
_GITLINK: Final = b"160000"
_END_SPACE: Final = re.compile(rb"(?<!\\) +$")


class UserRepository:
    """The repository that a folder of the user's lies in, if there is one; it holds no state."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def ignore_lists(self) -> bytes:
        """Return all patterns that ignore files of the folder, beyond its own `.gitignore` files.

        The last that matches wins, so the weakest come first: the user's global list, that of the
        repository, and the `.gitignore` files of the folders around this one.
        """
        inside = self._ask("rev-parse", "--show-prefix").removesuffix(b"\n")
        folders = [os.fsdecode(name) for name in inside.split(b"/")[:-1]]
        lists = [self._global_list(), self._own_list()]
        for depth in range(len(folders)):
            up = [os.pardir] * (len(folders) - depth)
            lists.append(self._read(self._root.joinpath(*up, ".gitignore")))
        # Each list speaks of paths from the folder that it is in, or from the top of all.
        depths = [0, 0, *range(len(folders))]
        return b"".join(
            line + b"\n"
            for depth, text in zip(depths, lists, strict=True)
            for line in _seen_from(folders[depth:], text)
        )

    def kept_although_ignored(self) -> tuple[bytes, ...]:
        """Return the files that the repository keeps although a list says to ignore them."""
        kept = self._ask("ls-files", "-z", "--stage", "--cached", "--ignored", "--exclude-standard")
        entries = [entry.partition(b"\t") for entry in kept.split(b"\0") if entry]
        return tuple(
            name for about, _, name in entries if about[:6] != _GITLINK and self.is_file(name)
        )

    def submodules(self) -> set[str]:
        """Return the folders at which the repository keeps others."""
        staged = self._ask("ls-files", "-z", "--stage").split(b"\0")
        links = [entry for entry in staged if entry.startswith(_GITLINK)]
        return {os.fsdecode(entry.partition(b"\t")[2]) for entry in links}

    def others(self, places: Iterable[str]) -> set[str]:
        """Return those folders at which another repository is, or a submodule belongs."""
        asked = set(places)
        if not asked:
            return set()
        links = self.submodules()
        return {one for one in asked if one in links or is_repository(self._root, one)}

    def is_file(self, name: bytes) -> bool:
        """Say whether a name still leads to a file or a link, and not through a link."""
        path = os.fsdecode(name)
        if any((self._root / above).is_symlink() for above in folders_of(path)):
            return False
        return (self._root / path).is_symlink() or (self._root / path).is_file()

    def tracks(self, name: str) -> bool:
        """Say whether the repository keeps this file or anything below it, in whatever case."""
        return bool(self._ask("ls-files", "-z", "--", f":(icase){name}"))

    def _global_list(self) -> bytes:
        named = self._ask("config", "--type=path", "--get", "core.excludesFile")
        if named:
            return self._read(self._root / os.fsdecode(named.removesuffix(b"\n")))
        home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111  # `Path.expanduser` raises where there is no home
        return self._read(self._root / home / "git" / "ignore")

    def _own_list(self) -> bytes:
        place = self._ask("rev-parse", "--git-path", "info/exclude").removesuffix(b"\n")
        return self._read(self._root / os.fsdecode(place)) if place else b""

    def _read(self, place: Path) -> bytes:
        with suppress(OSError):
            return place.read_bytes()
        return b""

    def _ask(self, *arguments: str) -> bytes:
        """Return the answer; nothing when there is no repository, or it has none."""
        ran = run_git(
            arguments,
            {**foreign_environment(), **_ASKING},
            folder=self._root,
            fine=(0, 1, 128),
        )
        if ran.returncode == 128 and not any(said in ran.stderr for said in _NONE_HERE):
            # A repository that cannot be read is not the same as none.
            raise refused(arguments[0], ran.stderr.decode("utf-8", "replace"))
        return ran.stdout if ran.returncode == 0 else b""


def is_repository(folder: Path, path: str) -> bool:
    """Say whether a path in a folder is the top of a repository, and not behind a link."""
    inside = f"{folder}/{path}/.git"
    if not (os.path.isfile(inside) or os.path.isfile(f"{inside}/HEAD")):  # noqa: PTH113  # `Path.is_file` raises where we may not look
        return False
    return not any(os.path.islink(folder / one) for one in (*folders_of(path), path))  # noqa: PTH114  # as above


def _seen_from(folders: Sequence[str], text: bytes) -> Iterator[bytes]:
    """Return the patterns of a list as they read further down, in one of the folders it is for."""
    for raw in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        line = _END_SPACE.sub(b"", raw.removesuffix(b"\r"))
        if not line or line.startswith(b"#"):
            continue
        mark, pattern = (b"!", line[1:]) if line.startswith(b"!") else (b"", line)
        end = b"/" if pattern.endswith(b"/") else b""
        parts = pattern.removesuffix(b"/").removeprefix(b"/").split(b"/")
        if not folders or b"/" not in pattern.removesuffix(b"/"):
            yield line
        else:
            for rest in _below(parts, folders):
                yield mark + b"/" + b"/".join(rest) + end


def _below(parts: list[bytes], folders: Sequence[str]) -> Iterator[list[bytes]]:
    """Return what is left of a pattern once these folders have matched its first parts."""
    if not parts:
        return
    if not folders:
        yield parts
    elif parts[0] == b"**":
        yield from _below(parts[1:], folders)
        yield from _below(parts, folders[1:])
    elif _is_match(parts[0], folders[0]):
        yield from _below(parts[1:], folders[1:])


def _is_match(part: bytes, folder: str) -> bool:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([f"/{os.fsdecode(part)}"]).match_file(folder)
