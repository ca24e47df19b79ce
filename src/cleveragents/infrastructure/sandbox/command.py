"""Commands of actors: what to run, where, within which limits, and what came of it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.domain.command import Command, CommandLimits, Finished
from cleveragents.domain.errors import SandboxError, SetupError
from cleveragents.domain.event import tell
from cleveragents.domain.paths import check_inside_path, escape
from cleveragents.infrastructure.leftovers import COMMAND_HOME
from cleveragents.infrastructure.sandbox.capped_output import CappedOutput
from cleveragents.infrastructure.sandbox.confinement import Confinement, Confiner, View
from cleveragents.infrastructure.sandbox.process_tree import MARK, Namespace, ProcessTree, Start
from cleveragents.infrastructure.sandbox.program_folders import confined_home, is_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from cleveragents.domain.command import Reason
    from cleveragents.domain.event import Notice
    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["Command", "CommandLimits", "CommandRunner", "Finished", "Place"]

#: What a command may know of the user's environment: nothing that opens a door.
_ALLOWED: Final = ("LANG", "PATH", "TERM", "TZ", "USER")
#: Output is cut at its limit; a program that writes this many times more is ended.
_FLOOD: Final = 4
#: How soon a request to stop is seen.
_TICK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Place:
    """Where commands run.

    `path` is the folder of the sandbox as a command sees it that runs with the prefix `enter`.
    Confined commands find it at `root`, the user's tree, and of that tree only what is `shared`.
    """

    path: Path
    root: Path | None = None
    enter: tuple[str, ...] = ()
    #: Folders of the user's tree that commands may read and run, such as `.venv`.
    shared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.shared:
            check_inside_path(name)


class CommandRunner:
    """Runs commands, confined where that is possible; any number of threads may share it.

    When `run` returns or raises, no process of the command is alive. Confined by bubblewrap,
    none can escape. Without it, one that left its session *and* cleared its environment can.
    """

    def __init__(
        self,
        confinement: Confinement | str = Confinement.AUTO,
        *,
        readable: tuple[Path, ...] = (),
        on_notice: Callable[[Notice], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._confiner = Confiner(Confinement(confinement), on_notice=on_notice)
        self._readable = readable
        self._clock = clock

    def check(self) -> None:
        """Refuse, with CA5006, where no command can run as it must."""
        self._confiner.bubblewrap()

    def run(
        self,
        command: Command,
        place: Place,
        *,
        stop: StopSignal | None = None,
        on_output: Callable[[bytes], object] | None = None,
    ) -> Finished:
        """Run a command to its end, to a limit, or until it is asked to stop.

        `on_output` hears both streams as they come, in this thread.
        A command that cannot be started is refused with CA5008.
        """
        started_s = self._clock()
        if stop is not None and stop.stopped:
            return Finished(128 + signal.SIGKILL, signal.SIGKILL, b"", b"", 0.0, "cancelled")
        output = _Output(command.limits.output_bytes_max, on_output)
        with ExitStack() as stack:
            start = self._prepare(command, place, stack)
            tree = stack.enter_context(_started(start, command))
            stopped = self._attend(
                tree, output, until_s=started_s + command.limits.time_s, stop=stop
            )
            code = tree.end()
            output.take(tree.rest())
        confined = start.namespace is not None
        if start.namespace is not None and not start.namespace.entered and not stopped and code > 0:
            raise _not_started(command, output.stderr.text().decode(errors="replace").strip())
        return Finished(
            exit_code=128 - code if code < 0 else code,
            signal=_signal_of(code, confined=confined),
            stdout=output.stdout.text(),
            stderr=output.stderr.text(),
            duration_s=self._clock() - started_s,
            stopped=stopped,
        )

    def _attend(
        self, tree: ProcessTree, output: _Output, *, until_s: float, stop: StopSignal | None
    ) -> Reason | None:
        """Take output until the program ends or has to; return why it has to."""
        while not tree.ended:
            if stop is not None and stop.stopped:
                return "cancelled"
            if self._clock() >= until_s:
                return "time"
            output.take(tree.read(_TICK_S))
            if output.floods:
                return "output"
        return None

    def _prepare(self, command: Command, place: Place, stack: ExitStack) -> Start:
        bubblewrap = self._confiner.bubblewrap()
        prefix = (*_memory_limit(command.limits), *place.enter)
        if bubblewrap is not None:
            namespace = stack.enter_context(Namespace())
            home = os.path.expanduser("~")  # noqa: PTH111  # there need not be one
            env = _environment(command, place.root or place.path, home=confined_home(home))
            search = os.environ.get("PATH", os.defpath)
            view = View(home, search, self._readable, namespace.writer)
            prefix += bubblewrap.arguments(command, place, view)
            return Start((*prefix, *command.argv), env, "/", command.stdin, namespace)
        private = tempfile.TemporaryDirectory(prefix=COMMAND_HOME, ignore_cleanup_errors=True)
        env = _environment(command, place.path, home=stack.enter_context(private))
        env[MARK] = secrets.token_hex(16)
        folder = f"{place.path}/{command.folder}"
        if place.enter:
            # The folder is there only for those who entered.
            prefix += ("env", f"--chdir={folder}")
            folder = "/"
        elif not is_inside(os.path.realpath(folder), os.path.realpath(place.path)):
            raise escape(command.folder, "leads out of the sandbox")
        return Start((*prefix, *command.argv), env, folder, command.stdin)


class _Output:
    """Both streams of one command, and who listens to them."""

    def __init__(self, bytes_max: int, listener: Callable[[bytes], object] | None) -> None:
        self._bytes_max = bytes_max
        self._listener = listener
        self.stdout = CappedOutput(bytes_max)
        self.stderr = CappedOutput(bytes_max)

    @property
    def floods(self) -> bool:
        return max(self.stdout.seen, self.stderr.seen) > _FLOOD * self._bytes_max

    def take(self, came: Iterable[tuple[str, bytes]]) -> None:
        for name, data in came:
            (self.stdout if name == "stdout" else self.stderr).add(data)
            tell(self._listener, data)


def _environment(command: Command, sandbox: Path, *, home: str) -> dict[str, str]:
    allowed = {
        name: value
        for name, value in os.environ.items()
        if name in _ALLOWED or name.startswith("LC_")
    }
    # Git in a sandbox shall not find the repository around it: that is the user's own.
    ceiling = {"GIT_CEILING_DIRECTORIES": os.fspath(sandbox.resolve().parent)}
    return {"PATH": os.defpath, "HOME": home} | allowed | dict(command.env) | ceiling


def _memory_limit(limits: CommandLimits) -> tuple[str, ...]:
    """Return the program that sets the limit: to set it in between fork and exec is not safe."""
    if limits.memory_bytes_max is None:
        return ()
    prlimit = shutil.which("prlimit")
    if prlimit is None:
        raise SetupError(
            "A limit of memory needs the program `prlimit`, which is not installed",
            code="CA1006",
            hint="Install util-linux, or leave `memory_bytes_max` out",
        )
    return (prlimit, f"--as={limits.memory_bytes_max}", "--")


def _started(start: Start, command: Command) -> ProcessTree:
    try:
        return ProcessTree(start)
    except OSError as error:
        raise _not_started(command, str(error)) from error


def _not_started(command: Command, reason: str) -> SandboxError:
    return SandboxError(
        f"The command {command.argv[0]!r} cannot be started: {reason}",
        code="CA5008",
        facts={"program": command.argv[0], "folder": command.folder, "reason": reason},
        hint="Check that the program is installed, and that the folder is in the sandbox",
    )


def _signal_of(code: int, *, confined: bool) -> int | None:
    if code < 0:
        return -code
    # Bubblewrap tells a signal as shells do.
    return code - 128 if confined and 128 < code < 128 + signal.NSIG else None
