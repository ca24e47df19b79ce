"""Output of a command as lines of the plan's log, while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.domain.redaction import SEARCHED_CHARS_MAX, redact_to

if TYPE_CHECKING:
    from collections.abc import Callable

#: A log is for people: what nobody reads to the end is not kept line by line.
LINES_MAX: Final = 1_000
LINE_CHARS_MAX: Final = 2_000
# No longer than what is searched for secrets.
_PENDING_BYTES_MAX: Final = SEARCHED_CHARS_MAX


class LineLog:
    """Cuts what a command prints into lines, without secrets; for the one thread that runs it."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._pending = b""
        self._lines = 0

    def take(self, data: bytes) -> None:
        """Log the lines that are complete now."""
        if self._lines > LINES_MAX:
            return  # a flood must not cost a look at each of its lines
        *lines, self._pending = (self._pending + data).split(b"\n")
        while len(self._pending) > _PENDING_BYTES_MAX:
            lines.append(self._pending[:_PENDING_BYTES_MAX])
            self._pending = self._pending[_PENDING_BYTES_MAX:]
        for line in lines:
            self._tell(line)

    def end(self) -> None:
        """Log what stands behind the last line end."""
        rest, self._pending = self._pending, b""
        if rest:
            self._tell(rest)

    def _tell(self, line: bytes) -> None:
        self._lines += 1
        if self._lines <= LINES_MAX:
            self._log(redact_to(line.decode("utf-8", "replace").rstrip("\r"), LINE_CHARS_MAX))
        elif self._lines == LINES_MAX + 1:
            self._log(f"[more than {LINES_MAX} lines of output; the rest is not logged]")
