"""What `git add` says of files that it leaves out, and how the user gets past it."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.git.program import refused

if TYPE_CHECKING:
    from pathlib import Path

_LEFT_OUT: Final = (
    "error:",
    "fatal:",
    "warning: could not open directory",
    "warning: unable to access",
)
# Among them, as it should be: repositories without a commit, pipes, sockets and devices are no
# part of a tree.
_RIGHTLY: Final = (
    "does not have a commit checked out",
    "can only add regular files, symbolic links or git-directories",
)
_NAMED_MAX: Final = 5
_CLOSED: Final = re.compile(
    r"(?:error: open\(\"(?P<file>.+)\"\)"
    r"|warning: (?:could not open directory|unable to access) '(?P<place>.+?)/?')"
    r": Permission denied$"
)


def left_out(said: str, root: Path) -> bool:
    """Tell whether something was left out, rightly; refuse with CA5101 if it was not."""
    lines = [line for line in said.splitlines() if line.startswith(_LEFT_OUT)]
    wrong = [line for line in lines if not line.endswith(_RIGHTLY)]
    closed = dict.fromkeys(one["file"] or one["place"] for one in map(_CLOSED.match, wrong) if one)
    if closed:
        raise _unreadable(list(closed), root)
    if wrong:
        raise refused("add", "\n".join(wrong))
    return bool(lines)


def _unreadable(paths: list[str], root: Path) -> SandboxError:
    command = _opening([root / path for path in paths[:_NAMED_MAX]])
    others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return SandboxError(
        f"{paths[0]!r}{others} may not be read, so the tree cannot be taken as it stands",
        code="CA5101",
        facts={"paths": [repr(path) for path in paths[:_NAMED_MAX]]},
        hint=f"Run `{command}`, or name them in `.gitignore` unless git tracks them",
    )


def _opening(places: list[Path]) -> str:
    """Return the command that lets us read them."""
    ours = all(_owner(place) == os.geteuid() for place in places)
    command = ["chmod", "-R", "u+rX"] if ours else ["sudo", "chown", "-R", str(os.geteuid())]
    return shlex.join([*command, *map(os.fspath, places)])


def _owner(place: Path) -> int | None:
    try:
        return place.lstat().st_uid
    except OSError:
        return None
