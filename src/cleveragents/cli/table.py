"""Tables for people: aligned text, safe for a terminal whatever the cells hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cleveragents.cli import output

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from cleveragents.domain.money import Money


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = ()
) -> str:
    """Return rows under their head; the columns named in `right` are aligned to the right."""
    lines = [tuple(one_line(cell) for cell in row) for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(head, line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def one_line(text: str) -> str:
    """Return a text without line ends and control characters, which could lie to the reader."""
    return output.one_line(text)


def money_column(amounts: Sequence[Money | None], *, absent: str) -> list[str]:
    """Return amounts with the same number of decimals, so that their digits stand in columns."""
    shown = [f"{one.usd:f}" for one in amounts if one is not None]
    places = max((len(one.partition(".")[2]) for one in shown), default=0)
    return [absent if one is None else f"{one.usd:.{places}f} USD" for one in amounts]
