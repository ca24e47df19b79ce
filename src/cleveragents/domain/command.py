"""A command as a value: what to run, within which limits, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from cleveragents.domain.errors import RequestError
from cleveragents.domain.paths import check_inside_path
from cleveragents.domain.redaction import redact_to

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Why a command was ended before its time.
Reason: TypeAlias = Literal["time", "output", "cancelled"]


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """How much one command may use; output is limited for each of its two streams."""

    time_s: float = 600.0
    #: Address space of each process.
    memory_bytes_max: int | None = None
    output_bytes_max: int = 10_000_000

    def __post_init__(self) -> None:
        for name in ("time_s", "memory_bytes_max", "output_bytes_max"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise RequestError(f"The limit `{name}` must be more than 0, got {value!r}")


@dataclass(frozen=True, slots=True)
class Command:
    """What to run; `folder` is where it starts, inside the sandbox."""

    argv: tuple[str, ...]
    stdin: bytes = field(default=b"", repr=False)
    #: Besides the few variables that every command gets. May hold a key, so it is not shown.
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str = "."
    limits: CommandLimits = CommandLimits()
    network: bool = False

    def __post_init__(self) -> None:
        if _is_text(self.argv) or not self.argv or not self.argv[0]:
            raise RequestError(
                f"A command must be a program with its arguments, got {self.argv!r}",
                hint="Pass a tuple of texts, such as ('pytest', '-q')",
            )
        if any("\0" in text for text in (*self.argv, *self.env, *self.env.values())):
            raise RequestError("A command and its environment must not contain NUL")
        if any(not name or "=" in name for name in self.env):
            raise RequestError("A variable of a command must have a name without `=`")
        if self.folder != ".":
            check_inside_path(self.folder)


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of a command; one that a signal ended has 128 + signal as its code, as in shells.

    `stopped` says why it was ended before its time. Of too much output the middle is left out.
    """

    exit_code: int
    signal: int | None
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)
    duration_s: float
    stopped: Reason | None = None


def last_words(finished: Finished, chars_max: int) -> str:
    """Return the end of what a command complained, or printed, without secrets."""
    said = (finished.stderr.strip() or finished.stdout.strip()).decode("utf-8", "replace")
    return redact_to(said, 10 * chars_max)[-chars_max:]


def _is_text(value: object) -> bool:
    # A text is a sequence of texts too, and to no one's surprise never meant so here.
    return isinstance(value, str)
