"""Sandboxes as overlays: a mount over a shared snapshot, made in a fraction of a millisecond."""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.sandbox import overlay_keeper
from cleveragents.infrastructure.sandbox.erasure import erase
from cleveragents.infrastructure.sandbox.sandbox import Ground
from cleveragents.infrastructure.sandbox.upper import touched_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.infrastructure.sandbox.layers import Layers
    from cleveragents.infrastructure.sandbox.sandbox import PlanTree

#: How long the keeper may take for one answer.
PATIENCE_S: Final = 30.0


class OverlayKeeper:
    """Our end of the keeper; one thread starts it, talks to it and ends it.

    Any thread may ask. When the keeper was killed the next request starts another:
    the mounts of the first are gone with it, and what was written into them is not.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        # All state below belongs to its one thread.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ca-overlay")
        self._process: subprocess.Popen[bytes] | None = None
        # A dead one is kept unburied: its number must not lead to somebody else's files.
        self._dead: list[subprocess.Popen[bytes]] = []

    def ask(self, verb: str, *arguments: Any) -> int:
        """Have something done and return the keeper's process number, or raise an `OSError`."""
        try:
            asked = self._thread.submit(self._ask, [verb, *arguments])
        except RuntimeError as error:
            raise OSError("the keeper of mounts is closed") from error
        return asked.result()

    def close(self) -> None:
        """End the keeper and with it every mount; closing twice is fine."""
        try:
            self._thread.submit(self._end).result()
        except RuntimeError:
            return
        self._thread.shutdown()

    # -- in the one thread -----------------------------------------------------------------

    def _ask(self, request: list[Any]) -> int:
        process = self._process or self._started()
        try:
            answer = self._exchange(process, json.dumps(request).encode())
        except ConnectionError:
            # It was killed, and every mount with it, this one too: the next keeper makes it.
            self._bury_later(process)
            process = self._started()
            answer = self._exchange(process, json.dumps(request).encode())
        if answer is not None:
            raise OSError(answer)
        return process.pid

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", overlay_keeper.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._home,
            env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
            # Ctrl-C in the terminal is for us; attempts are stopped one by one.
            start_new_session=True,
        )
        try:
            refusal = self._exchange(process, b"")
        except ConnectionError as error:
            refusal = str(error)
        if refusal is not None:
            self._bury_later(process)
            raise OSError(refusal)
        self._process = process
        return process

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes) -> str | None:
        """Send a line, unless it is empty, and return the answer, or raise a `ConnectionError`."""
        assert process.stdin is not None, "it was asked for"
        assert process.stdout is not None, "it was asked for"
        if request:
            os.write(process.stdin.fileno(), request + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
            part = os.read(process.stdout.fileno(), 4096) if ready else b""
            if not part:
                raise ConnectionResetError("the keeper of mounts gave no answer")
            answer += part
        said: str | None = json.loads(answer)
        return said

    def _bury_later(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        self._process = None
        self._dead.append(process)

    def _end(self) -> None:
        if self._process is not None:
            self._bury_later(self._process)
        for process in self._dead:
            process.communicate()
        self._dead.clear()


class OverlayKind:
    """Each sandbox is an overlay over a snapshot, and over a layer of what changed since."""

    name: Final = "overlay"

    def __init__(self, layers: Layers, folder: Path) -> None:
        self._layers = layers
        self._home = layers.home
        self._folder = folder
        self._keeper = OverlayKeeper(self._home)

    def why_not(self) -> str | None:
        """Try a real mount; return why overlays cannot be used here, or None."""
        if shutil.which("nsenter") is None:
            return "the program `nsenter` is not installed"
        trial = self._folder / f"trial-{secrets.token_hex(4)}"
        lower = trial / "lower"
        try:
            (lower / "folder").mkdir(parents=True)
            (lower / "folder" / "file").touch()
            # A layer tells by such a device that a file is gone.
            os.mknod(trial / "gone", 0o20000)
            ground = self._mounted(trial, (lower,))
            shutil.rmtree(ground.path / "folder")
            (ground.path / "folder").mkdir()
            found = touched_paths(trial / "upper", (lower,))
        except (OSError, SandboxError) as error:
            return str(error)
        finally:
            self.remove(trial)
        return None if found == ("folder/file",) else "deleted files leave no trace"

    def make(self, folder: Path, tree: PlanTree) -> Ground:
        """Mount an overlay, or find it mounted; what was written into it before is there."""
        return self._mounted(folder, self._layers.lowers(tree))

    open = make

    def remove(self, folder: Path) -> None:
        """Unmount and delete."""
        # Without a keeper there is no mount.
        with suppress(OSError):
            self._keeper.ask("unmount", self._relative(folder / "tree"))
        erase(folder)

    def close(self) -> None:
        """End every mount."""
        self._keeper.close()

    def _mounted(self, folder: Path, lowers: Sequence[Path]) -> Ground:
        upper, target = folder / "upper", folder / "tree"
        # A new one each time: what a killed keeper left in the old one forbids its use.
        work = folder / f"work-{secrets.token_hex(4)}"
        for one in (upper, work, target):
            one.mkdir(parents=True, exist_ok=True)
        below, *rest = map(self._relative, (upper, work, target))
        try:
            pid = self._keeper.ask("mount", [self._relative(one) for one in lowers], below, *rest)
        except OSError as error:
            raise SandboxError(
                f"An overlay could not be mounted: {error}",
                code="CA5002",
                facts={"folder": folder},
                hint="Choose another kind of sandbox: `worktree` or `copy`",
            ) from error
        return Ground(
            path=Path(f"/proc/{pid}/root{target}"),
            inner=target,
            enter=("nsenter", "--preserve-credentials", "-U", "-m", "-t", str(pid), "--"),
            upper=upper,
            lowers=tuple(lowers),
        )

    def _relative(self, path: Path) -> str:
        # Short, and of our own characters alone, whatever folder the user's tree lies in:
        # options of a mount are cut at 4096 bytes, and end at a comma or colon.
        return os.fspath(path.relative_to(self._home))
