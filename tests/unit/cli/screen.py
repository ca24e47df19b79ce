"""What a person sees after a program has written to a terminal, and real terminals to run in."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SEQUENCE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")


@dataclass
class Screen:
    """Lines of text under a cursor; knows what the live view writes, and refuses the rest."""

    lines: list[str] = field(default_factory=lambda: [""])
    row: int = 0
    column: int = 0

    def write(self, text: str) -> None:
        at = 0
        while at < len(text):
            found = _SEQUENCE.match(text, at)
            if found is not None:
                self._obey(found[1], found[2])
                at = found.end()
            else:
                self._put(text[at])
                at += 1

    def _put(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.row, self.column = self.row + 1, 0
            if self.row == len(self.lines):
                self.lines.append("")
        else:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + char + line[self.column + 1 :]
            self.column += 1

    def _obey(self, number: str, letter: str) -> None:
        if letter == "A":
            # A terminal stops at its first line. It is reached when Ctrl-C was typed: the system
            # then throws away what was written and not shown yet.
            self.row = max(0, self.row - int(number))
        elif letter in "KJ":
            self.lines[self.row] = self.lines[self.row][: self.column]
            if letter == "J":
                del self.lines[self.row + 1 :]
        else:
            assert letter == "m", f"unknown sequence {letter!r}"

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n")


@dataclass
class Session:
    """What a program in a real pseudo-terminal wrote, and how it ended."""

    written: str
    code: int
    frames: int

    @property
    def screen(self) -> str:
        shown = Screen()
        shown.write(self.written.replace("\r\n", "\n"))
        return shown.text


def _own_terminal() -> None:
    """Let what is typed reach the process: Ctrl-C is a signal only from its own terminal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def in_terminal(
    arguments: list[str],
    folder: Path,
    react: Callable[[str, subprocess.Popen, int], object] = lambda *_: None,
    environment: dict[str, str] | None = None,
    timeout_s: float = 60.0,
) -> Session:
    """Run the command in a pseudo-terminal of 100 by 30.

    `react` is handed all that was written so far, the process, and where to type.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "cleveragents", *arguments],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", **(environment or {})},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_own_terminal,  # noqa: PLW1509  # this process has no other threads to fear for
    )
    os.close(theirs)
    written, frames, ends = b"", 0, time.monotonic() + timeout_s
    try:
        while True:
            assert time.monotonic() < ends, written.decode("utf-8", "replace")
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            written, frames = written + data, frames + 1
            react(written.decode("utf-8", "replace"), process, ours)
    finally:
        if process.poll() is None and time.monotonic() >= ends:
            process.kill()
        process.wait(10)
        os.close(ours)
    return Session(written.decode("utf-8", "replace"), process.returncode, frames)
