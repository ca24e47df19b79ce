"""Which paths a change may name: files inside the plan's tree, each by its one spelling."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import PlanError, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

#: No system opens a longer path in one piece.
_PATH_BYTES_MAX: Final = 4_096
# Folded away by macOS and Windows file systems, so that `.g\u200cit` and `.GIT.` open `.git` there.
_IGNORED: Final = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)


def check_path(path: str) -> None:
    """Refuse, with CA4003, a path that is not the plain relative name of a file in the tree.

    Names are text with `surrogateescape`, so a name that is not UTF-8 survives.
    """
    if not isinstance(path, str):
        raise _refusal("must be a str", path)
    for rule, is_broken in _RULES:
        if is_broken(path):
            raise _refusal(rule, path)


def folders_of(path: str) -> list[str]:
    """Return the folders that a path lies in, the outermost first."""
    return [path[:end] for end, char in enumerate(path) if char == "/"]


def _has_two_spellings(path: str) -> bool:
    # Escaped bytes that form valid UTF-8 would name the same file as the plain character.
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") != path
    except UnicodeEncodeError:
        return True


def _enters_git(path: str) -> bool:
    folded = path.translate(_IGNORED).casefold()
    return any(
        segment.partition(":")[0].rstrip(". ") in {".git", "git~1"} for segment in _parts(folded)
    )


def _parts(path: str) -> list[str]:
    # A backslash is a letter of a name here, and separates names elsewhere: both must be safe.
    return path.replace("\\", "/").split("/")


_RULES: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    ("must not be empty", lambda path: not path),
    ("must not contain NUL", lambda path: "\0" in path),
    ("must be relative", lambda path: path[0] == "/"),
    ("must name a file, not end in `/`", lambda path: path[-1] == "/"),
    (
        "must have no empty, `.` or `..` segment",
        lambda path: not {"", ".", ".."}.isdisjoint(path.split("/")) or ".." in _parts(path),
    ),
    ("must stay out of `.git`", _enters_git),
    ("must have one spelling as UTF-8 with surrogateescape", _has_two_spellings),
)


def _refusal(rule: str, path: object) -> PlanError:
    return PlanError(
        f"The path of a change {rule}, got {path!r}",
        code="CA4003",
        facts={"path": repr(path), "rule": rule},
        hint="Pass the path of the file from the root of the tree, such as 'src/app.py'",
    )


def check_inside_path(path: str) -> None:
    """Refuse with CA5001 what is not the plain relative path of a file in the tree."""
    try:
        check_path(path)
    except PlanError as error:
        raise escape(path, error.facts["rule"]) from None
    if len(os.fsencode(path)) > _PATH_BYTES_MAX:
        raise escape(path[:50] + "…", f"must have at most {_PATH_BYTES_MAX} bytes")


def escape(path: str, rule: str) -> SandboxError:
    """Return the refusal of a path that leads out, or that could."""
    return SandboxError(
        f"The path of a file in a sandbox {rule}, got {path!r}",
        facts={"path": repr(path), "rule": rule},
        hint="Name a file inside the sandbox by its path from the root, such as 'src/app.py'",
    )
