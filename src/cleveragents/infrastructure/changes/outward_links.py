"""Symbolic links among changes that lead out of the tree, whatever they are followed through."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.domain.changeset import FileMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cleveragents.infrastructure.git.repository import GitRepository, TreeChange

_HOPS_MAX: Final = 40
#: Folders in the tree that are no part of it.
_APART: Final = {".git", ".cleveragents"}


@dataclass(frozen=True, slots=True)
class OutwardLink:
    """A link, and what it says."""

    path: str
    target: str


def outward_links(
    repository: GitRepository, commit: str, changes: Iterable[TreeChange]
) -> tuple[OutwardLink, ...]:
    """Return the links that these changes leave in a commit and that lead out of its tree.

    Git's folder and ours count as outside.
    """
    made = [one.path for one in changes if one.new and one.new.mode == FileMode.SYMLINK]
    if not made:
        return ()
    found = {
        path: blob.oid
        for path, blob in repository.files(commit).items()
        if blob.mode == FileMode.SYMLINK
    }
    contents = repository.read(list(found.values()))
    links = dict(zip(found, map(os.fsdecode, contents), strict=True))
    root = os.fspath(repository.root)
    return tuple(OutwardLink(path, links[path]) for path in made if _leads_out(path, links, root))


def _leads_out(path: str, links: Mapping[str, str], root: str) -> bool:
    """Follow a link step by step, through the other links of its tree; a circle leads nowhere."""
    here: list[str] = []
    ahead = path.split("/")
    hops = 0
    while ahead:
        step, *ahead = ahead
        if step in {"", "."}:
            continue
        if step == os.pardir:
            if not here:
                return True
            here.pop()
            continue
        if step.casefold() in _APART:
            return True
        here.append(step)
        target = links.get("/".join(here))
        if target is None:
            continue
        hops += 1
        if hops > _HOPS_MAX:
            return False
        here.pop()
        if target.startswith("/"):
            if not f"{target}/".startswith(f"{root}/"):
                return True
            here, target = [], target[len(root) :]
        ahead = [*target.split("/"), *ahead]
    return False
