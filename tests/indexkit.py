"""Trees, clocks and overlays for tests of the code index."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.infrastructure.code_index.index import IndexLimits, StoredCodeIndex
from cleveragents.infrastructure.code_index.keeper import Clocks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: As if everything had been written long before it is looked at.
LATER = Clocks(lambda: time.time_ns() + 60_000_000_000, time.monotonic)
#: A request that may take all the time there is.
PATIENT = IndexLimits(request_s=1e9)


class Written:
    """An overlay of given contents."""

    def __init__(self, changed: Mapping[str, bytes | None]) -> None:
        self._changed = dict(changed)

    def changed(self) -> Mapping[str, bytes | None]:
        return self._changed


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())


def view_of(index: StoredCodeIndex, root: Path, overlay: Written | None = None):
    return index.view(ContextRequest("a task", root, overlay=overlay), StopSignal())


def fresh_view(root: Path, cache: Path, overlay: Written | None = None):
    """A view by an index that knows nothing yet."""
    with StoredCodeIndex(cache, limits=PATIENT, clocks=LATER) as index:
        return view_of(index, root, overlay)


def everything(view) -> tuple:
    """All that searches say about a tree, to be compared as a whole."""
    terms = {"alpha": 1.0, "beta": 2.0, "gamma": 0.5}
    return (
        view.paths,
        view.missing,
        view.files_like(terms),
        view.chunks_like(terms, 50),
        view.paths_like(terms),
        view.symbols_like(terms),
        view.users("alpha"),
        view.definitions("alpha"),
        [view.rarity(term) for term in terms],
        {path: (view.card(path), view.text(path)) for path in view.paths},
    )


def git(root: Path, *arguments: str, at: int = 1_700_000_000) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": f"{at} +0000",
        "GIT_COMMITTER_DATE": f"{at} +0000",
    }
    settings = ("-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main")
    ran = subprocess.run(
        ["git", *settings, *arguments], cwd=root, env=environment, capture_output=True, check=True
    )
    return ran.stdout.decode().strip()


def commit(root: Path, message: str, files: Mapping[str, str], *, at: int) -> str:
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message, at=at)
    return git(root, "rev-parse", "HEAD")
