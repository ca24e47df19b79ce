"""Who holds a sandbox: one process of one machine, told apart from every later one."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Owner:
    """A process by its machine (since it was started), its number and the moment it began."""

    machine: str
    pid: int
    began: str
    token: str

    @classmethod
    def here(cls) -> Owner:
        """Return a new owner in this process."""
        pid = os.getpid()
        return cls(this_machine(), pid, _began(pid), secrets.token_hex(4))

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """Read an owner back; None for what is not one of ours."""
        parts = text.split("-")
        if len(parts) != 4 or not parts[1].isdecimal():
            return None
        return cls(parts[0], int(parts[1]), parts[2], parts[3])

    def __str__(self) -> str:
        return f"{self.process}-{self.token}"

    @property
    def process(self) -> str:
        """The process alone, which may be several owners."""
        return f"{self.machine}-{self.pid}-{self.began}"

    @property
    def is_gone(self) -> bool:
        """True when the process is certainly dead; of another machine nobody here can tell."""
        return self.machine == this_machine() and _began(self.pid) != self.began


@cache
def this_machine() -> str:
    """Return a name for this machine since it was started, and for its numbering of processes.

    Containers may share a disk and a kernel, and number their processes each for itself.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        numbering = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # no path, but a name
    except OSError:
        boot, numbering = socket.gethostname(), ""
    return f"{crc32(boot.encode()):08x}{crc32(numbering.encode()):08x}"


def boot_of(owner: str) -> str:
    """Return the part of an owner's name that changes when its machine is started again."""
    return owner[:8]


def _began(pid: int) -> str:
    """Return when a process began, in ticks of the machine; "" when there is none."""
    try:
        said = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return _is_there(pid)
    # The name of the program may hold blanks and brackets; what follows its last one is regular.
    state, *fields = said[said.rindex(b")") + 2 :].split()
    return "" if state in {b"Z", b"X"} else fields[18].decode()


def _is_there(pid: int) -> str:
    """Answer where processes do not tell when they began: "0" for one that is there."""
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "0"
