"""How commands are confined: by bubblewrap, in namespaces of their own.

A command sees the system read-only, its sandbox writable, and of the user's home and of what
other programs left in temporary folders nothing but the programs it needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import SetupError
from cleveragents.domain.event import Notice, tell
from cleveragents.infrastructure.sandbox.program_folders import (
    ProgramFolders,
    confined_home,
    find_program,
    hidden_folders,
    is_inside,
    search_path,
    secrets_of_machine,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cleveragents.infrastructure.sandbox.command import Command, Place

__all__ = ["Bubblewrap", "Confinement", "Confiner", "View", "probe_bubblewrap"]

_PROBE_S_MAX: Final = 20.0
#: Processes of their own, gone with us, with no way back to our terminal and no privilege.
_APART: Final = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
#: Namespaces inside the namespace would open much of the kernel; bubblewrap before 0.8 cannot.
_NO_MORE_NAMESPACES: Final = ("--disable-userns",)
#: Where root runs us, settings of the kernel are root's to write, without any privilege.
_SYSTEM: Final = (
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"),
)


class Confinement(StrEnum):
    """What to do about commands where bubblewrap is missing or does not work."""

    #: Run them unconfined, and say so once.
    AUTO = "auto"
    #: Refuse them.
    REQUIRED = "required"
    #: Run them unconfined everywhere.
    OFF = "off"


@dataclass(frozen=True, slots=True)
class View:
    """What the user lets commands see besides their place."""

    home: str
    #: The user's own `PATH`. Never the command's: it would name any folder, and see it.
    search: str
    readable: tuple[Path, ...]
    #: The descriptor that bubblewrap tells its status to.
    status: int


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A bubblewrap that works here, with the options that it knows."""

    program: str
    options: tuple[str, ...]

    def arguments(self, command: Command, place: Place, view: View) -> tuple[str, ...]:
        """Return what comes before the command."""
        hidden = hidden_folders(view.home)
        real = os.path.realpath(place.root or place.path)
        shown = ProgramFolders(view.home, hidden, apart=real)
        _show(shown, command, place, view)
        arguments = [self.program, *self.options, *_SYSTEM]
        for folder in hidden:
            arguments += ["--tmpfs", folder]
        arguments += ["--dir", os.path.realpath(confined_home(view.home))]
        for path in shown.folders:
            arguments += ["--ro-bind", path, path]
        folders, files = secrets_of_machine(apart=(*hidden, real, *map(str, view.readable)))
        for folder in (*shown.masked_folders, *folders):
            arguments += ["--tmpfs", folder]
        for file in (*shown.masked_files, *files):
            arguments += ["--ro-bind", os.devnull, file]
        # After all else, so that nothing shows the tree that the sandbox stands for.
        arguments += ["--bind", os.fspath(place.path), real]
        for name, target in shown.links.items():
            arguments += ["--symlink", target, name]
        for name in place.shared if place.root else ():
            arguments += ["--ro-bind-try", f"{real}/{name}", f"{real}/{name}"]
        if not command.network:
            arguments += ["--unshare-net"]
        arguments += ["--chdir", os.path.normpath(f"{real}/{command.folder}")]
        return (*arguments, "--json-status-fd", str(view.status), "--")


def _show(shown: ProgramFolders, command: Command, place: Place, view: View) -> None:
    root = place.root or place.path
    folders = search_path(view.search)
    for folder in (*folders, *(f"{root}/{name}/bin" for name in place.shared)):
        shown.show_search_folder(folder)
    program = find_program(command.argv[0], folders)
    # What is in the sandbox is its actor's work, and may name any folder in its first line.
    own = [os.path.realpath(one) for one in (root, place.path)] + [os.fspath(place.path)]
    if program is not None and not any(is_inside(program, one) for one in own):
        shown.show_program(program)
    shown.show_data_of_programs()
    for path in (root, *view.readable):
        shown.show(os.fspath(path))
    if command.network:
        # How names are looked up; often a link into a folder of a running service.
        shown.show(os.path.realpath("/etc/resolv.conf"))


class Confiner:
    """Says how to confine commands; any number of threads may ask.

    Whether bubblewrap works is found out at the first question, and all get the first answer.
    That it does not work is told exactly once.
    """

    def __init__(
        self,
        policy: Confinement = Confinement.AUTO,
        *,
        on_notice: Callable[[Notice], object] | None = None,
        probe: Callable[[], Bubblewrap | str] | None = None,
    ) -> None:
        self._policy = Confinement(policy)
        self._on_notice = on_notice
        self._probe = probe or probe_bubblewrap
        self._lock = threading.Lock()  # guards: _answer
        self._answer: Bubblewrap | str | None = None

    def bubblewrap(self) -> Bubblewrap | None:
        """Return how to confine a command, None to run it unconfined; refuse with CA5006."""
        if self._policy is Confinement.OFF:
            return None
        with self._lock:
            answer = self._answer
        if answer is None:
            answer = self._find_out()
        if isinstance(answer, Bubblewrap):
            return answer
        if self._policy is Confinement.REQUIRED:
            raise SetupError(
                f"Commands must be confined, and {answer}",
                code="CA5006",
                facts={"reason": answer},
                hint="Install bubblewrap and allow user namespaces, or choose `auto` or `off`",
            )
        return None

    def _find_out(self) -> Bubblewrap | str:
        # Outside the lock: threads that come together may each try, and the first answer counts.
        fresh = self._probe()
        with self._lock:
            first = self._answer is None
            answer = self._answer = fresh if self._answer is None else self._answer
        if first and isinstance(answer, str) and self._policy is Confinement.AUTO:
            tell(
                self._on_notice,
                Notice("CA5006", f"Commands run unconfined: {answer}", {"reason": answer}),
            )
        return answer


def probe_bubblewrap() -> Bubblewrap | str:
    """Return a bubblewrap that works here, or why there is none."""
    program, nothing = shutil.which("bwrap"), shutil.which("true")
    if program is None or nothing is None:
        return "`bwrap` is not installed"
    reason = ""
    for more in (_NO_MORE_NAMESPACES, ()):
        options = (*_APART, *more)
        trial = [program, *options, "--unshare-net", *_SYSTEM, "--", nothing]
        try:
            subprocess.run(trial, capture_output=True, check=True, timeout=_PROBE_S_MAX)
        except subprocess.CalledProcessError as error:
            reason = reason or os.fsdecode(error.stderr).strip()
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = reason or str(error)
        else:
            return Bubblewrap(program, options)
    return f"`bwrap` does not work here: {reason}"
