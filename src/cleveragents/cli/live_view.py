"""A run on a terminal: drawn in place, at most ten times a second.

It writes ordinary lines and moves the cursor back up over them, and sets no mode of the terminal:
so however the process ends, there is nothing to restore.
"""

from __future__ import annotations

import os
import shutil
import unicodedata
from typing import TYPE_CHECKING, Final

from cleveragents.cli import output
from cleveragents.cli.plain_view import warning
from cleveragents.cli.run_lines import Line, name_width, node_line, status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cleveragents.cli.view_model import NodeView, RunModel
    from cleveragents.domain.event import Notice
    from cleveragents.domain.run_events import RunEvent

REDRAW_S: Final = 0.1
#: A plan of more nodes is drawn less often, so that looking at it takes little from its work.
_MANY: Final = 1000
_REDRAW_MANY_S: Final = 0.5
FAILURES_SHOWN_MAX: Final = 5

_COLORS: Final = {"good": "32", "bad": "31", "busy": "36", "again": "33", "dim": "2"}


def frame(model: RunModel, now: float, size: tuple[int, int]) -> tuple[Line, ...]:
    """Return the lines of a run that fit a terminal of so many columns and lines.

    Every node if there is room; else those that run, the last failures, and the sums.
    """
    columns, lines = size
    room = max(1, lines - 2)
    rows = list(model.rows())
    if len(rows) <= room:
        width = name_width(model)
        told = [node_line(model, one, now, width) for one in rows]
    else:
        told = _collapsed(model, rows, now, room)[:room]
    return tuple(
        Line(clipped(one.text, columns - 1), one.tone) for one in (*told, status(model, now))
    )


def _collapsed(model: RunModel, rows: list[NodeView], now: float, room: int) -> list[Line]:
    """Return the lines of what runs and of what failed last."""
    width = name_width(model)
    running = [one for one in rows if one.is_running or one.again_at is not None]
    failures = list(model.failed.values())[-FAILURES_SHOWN_MAX:]
    shown = running[: max(0, room - len(failures) - 1)]
    told = [node_line(model, one, now, width) for one in shown]
    if len(shown) < len(running):
        told.append(Line(f"    and {len(running) - len(shown)} more that run"))
    return [*told, *(node_line(model, one, now, width) for one in failures)]


def clipped(text: str, columns: int) -> str:
    """Return what fits into so many columns of a terminal; wide characters take two."""
    if columns_of(text) <= columns:
        return text
    while text and columns_of(text) >= columns:
        text = text[:-1]
    return f"{text}…"


def columns_of(text: str) -> int:
    """Return how many columns a text takes."""
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


class LiveView:
    """Draws a run in place; used by one thread, which owns the terminal meanwhile."""

    def __init__(
        self,
        model: RunModel,
        *,
        size: Callable[[], tuple[int, int]] | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._model = model
        self._size = size or _terminal_size
        self._has_colors = not environment.get("NO_COLOR")
        self._drawn: tuple[Line, ...] = ()
        self._drawn_at = float("-inf")

    def take(self, event: RunEvent, at: float, files: int | None) -> None:
        """Take an event into account; it is seen when time goes on."""
        self._model.take(event, at, files)

    def tick(self, now: float) -> None:
        """Draw anew, unless that was just done or would change nothing."""
        pause_s = REDRAW_S if len(self._model.nodes) <= _MANY else _REDRAW_MANY_S
        if now - self._drawn_at >= pause_s:
            self._draw(now)

    def say(self, text: str) -> None:
        """Put a word above what is drawn, where it stays."""
        output.draw(f"{self._back()}\x1b[J{output.visible(text)}")
        self._drawn = ()
        self._drawn_at = float("-inf")

    def warn(self, notice: Notice) -> None:
        """Put a warning above what is drawn."""
        self.say(warning(notice))

    def close(self, now: float) -> None:
        """Draw the last state and leave it standing; what is said next comes below it."""
        self._draw(now)
        self._drawn = ()

    def _draw(self, now: float) -> None:
        fresh = frame(self._model, now, self._size())
        self._drawn_at = now
        if fresh == self._drawn:
            return
        # One write: a terminal shows the old state or the new one, and nothing between.
        body = "\x1b[K\n".join(self._painted(line) for line in fresh)
        output.draw(f"{self._back()}{body}\x1b[J")
        self._drawn = fresh

    def _back(self) -> str:
        """Return what leads from below the drawn lines to their first column."""
        rows = _rows_of(self._drawn, self._size()[0])
        return f"\r\x1b[{rows}A" if rows else "\r"

    def _painted(self, line: Line) -> str:
        color = _COLORS.get(line.tone)
        if color is None or not self._has_colors:
            return line.text
        bare = line.text.lstrip(" ")
        start = len(line.text) - len(bare)
        return f"{line.text[:start]}\x1b[{color}m{bare[:1]}\x1b[0m{bare[1:]}"


def _rows_of(lines: Sequence[Line], columns: int) -> int:
    """Return how many rows lines take, which a terminal that became narrower has wrapped."""
    return sum(max(1, -(-columns_of(line.text) // max(1, columns))) for line in lines)


def _terminal_size() -> tuple[int, int]:
    try:
        size = os.get_terminal_size(2)
    except OSError:
        size = shutil.get_terminal_size()
    return size.columns, size.lines
