"""A program and all that it starts: read while it runs, and ended as a whole."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleveragents.infrastructure.sandbox.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

__all__ = ["MARK", "Namespace", "ProcessTree", "Start", "end_commands_of"]

#: The variable by which processes are found again that left the group of their program, or lost
#: the process that ran it: its value begins with the name of that process.
MARK: Final = "CLEVERAGENTS_COMMAND"
#: A killed process that waits for a dead disk is not waited for any longer.
_DEATH_S_MAX: Final = 5.0
_CHUNK_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Start:
    """How a program is started; without a namespace, `MARK` is in its environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    folder: str
    stdin: bytes
    namespace: Namespace | None = None


class Namespace:
    """What bubblewrap tells of the processes that it keeps apart; for one thread."""

    def __init__(self) -> None:
        reader, writer = os.pipe()
        #: Where we read what bubblewrap tells, and where it writes.
        self.reader, self.writer = reader, writer
        #: Whether the program itself was started.
        self.entered = False
        self._told = b""
        self._first: int | None = None
        self._open = {reader, writer}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open:
            os.close(descriptor)

    def hand_over(self) -> None:
        """Close our copy of what bubblewrap writes to, so that its end can be seen."""
        self._open.discard(self.writer)
        os.close(self.writer)

    def feed(self, data: bytes) -> None:
        """Take what bubblewrap wrote; each line is one fact."""
        *lines, self._told = (self._told + data).split(b"\n")
        for line in lines:
            fact: dict[str, Any] = json.loads(line)
            if "child-pid" in fact:
                self._first = _watch(fact["child-pid"])
                self._open |= {self._first} if self._first is not None else set()
            # Told only if the program could be executed.
            self.entered = self.entered or "exit-code" in fact

    def wait_until_gone(self) -> None:
        """Wait for the end of its first process, which comes after that of all others."""
        if self._first is not None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._first, selectors.EVENT_READ)
                selector.select(_DEATH_S_MAX)


class ProcessTree:
    """One program with all that it starts; for the one thread that started it.

    When `end` returns, none of it is alive: in a namespace nothing can escape. Without one, its
    group is killed and, on Linux, whatever still carries its mark in the environment.
    """

    def __init__(self, start: Start) -> None:
        if start.namespace is None:
            mark = f"{Owner.here().process}-{start.env[MARK]}"
            start = replace(start, env={**start.env, MARK: mark})
        self._mark = start.env.get(MARK, "")
        self._namespace = start.namespace
        self._selector = selectors.DefaultSelector()
        try:
            self._process = _spawn(start)
        except BaseException:
            self._selector.close()
            raise
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._streams = {"stdout": self._process.stdout, "stderr": self._process.stderr}
        for name, stream in self._streams.items():
            self._selector.register(stream, selectors.EVENT_READ, name)
        if self._namespace is not None:
            self._namespace.hand_over()
            self._selector.register(self._namespace.reader, selectors.EVENT_READ, "status")
        self._end = _watch(self._process.pid)
        if self._end is not None:
            self._selector.register(self._end, selectors.EVENT_READ, "end")
        #: Whether the program itself is over; what it started may not be.
        self.ended = False
        self._code: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._selector.close()
        for stream in self._streams.values():
            stream.close()
        if self._end is not None:
            os.close(self._end)

    def read(self, wait_s: float) -> list[tuple[str, bytes]]:
        """Wait for output or the end; return what came, each part with the name of its stream."""
        came: list[tuple[str, bytes]] = []
        for key, _ in self._selector.select(wait_s):
            if key.data == "end":
                self.ended = True
                self._selector.unregister(key.fileobj)
                continue
            data = os.read(key.fd, _CHUNK_BYTES)
            if not data:
                self._selector.unregister(key.fileobj)
            elif key.data == "status" and self._namespace is not None:
                self._namespace.feed(data)
            else:
                came.append((key.data, data))
        if self._end is None and self._process.poll() is not None:
            self.ended = True
        return came

    def end(self) -> int:
        """Kill whatever is left; return how the program ended, as `Popen.returncode` tells it."""
        if self._code is None:
            self._kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_DEATH_S_MAX)
            if self._namespace is not None:
                self._namespace.wait_until_gone()
            code = self._process.returncode
            self._code = -signal.SIGKILL if code is None else code
        return self._code

    def _kill(self) -> None:
        if self._namespace is not None:
            self._process.kill()
            return
        # Before it is reaped, as long as its number cannot be another's.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        _kill_marked(self._mark)

    def rest(self) -> Iterator[tuple[str, bytes]]:
        """Yield what was written before the end, and wait for nothing more."""
        until = time.monotonic() + _DEATH_S_MAX
        while time.monotonic() < until and (came := self.read(0)):
            yield from came


def end_commands_of(owner: Owner) -> None:
    """Kill what the programs of a dead process left running, as far as it carries their mark."""
    _kill_marked(f"{owner.process}-")


def _spawn(start: Start) -> subprocess.Popen[bytes]:
    # A file, not a pipe: nobody has to feed it, whether it is read or not.
    with tempfile.TemporaryFile() as stdin:
        stdin.write(start.stdin)
        stdin.seek(0)
        return subprocess.Popen(
            start.argv,
            stdin=stdin if start.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=start.folder,
            env=start.env,
            start_new_session=True,
            pass_fds=() if start.namespace is None else (start.namespace.writer,),
        )


def _watch(pid: int) -> int | None:
    """Return a descriptor that is readable from the end of a process on; None without one."""
    pidfd_open = getattr(os, "pidfd_open", None)  # Linux alone
    if pidfd_open is None:
        return None
    try:
        descriptor: int = pidfd_open(pid)
    except OSError:
        return None
    return descriptor


def _kill_marked(mark: str) -> None:
    until = time.monotonic() + _DEATH_S_MAX
    # Again, because one may have started another before it was killed.
    while (found := list(_marked(mark))) and time.monotonic() < until:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> Iterator[int]:
    """Yield processes with a mark that begins so; a dead one has no environment any more."""
    wanted = os.fsencode(f"{MARK}={mark}")
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"\0" + wanted in b"\0" + (folder / "environ").read_bytes():
                yield int(folder.name)
