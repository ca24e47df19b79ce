"""A strange run in words and in source lines."""

from __future__ import annotations

import json
import linecache
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cleveragents.hunt.verdict import Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.hunt.prove.search import Baseline, Strange
    from cleveragents.hunt.prove.turns import Point, Turn

__all__ = ["plan_text", "reason_of", "steps_of"]

_STEPS_MAX = 300
_TEXT_MAX = 300
#: Texts of this length are told as they are.
_PLAIN_MAX = 160
#: After these a part of a text begins, and before those it ends.
_BEGINS = re.compile(r"[(\[{]|, ")
_ENDS = re.compile(r"^[^,)\]}]*")


def steps_of(points: Sequence[Point], root: Path) -> tuple[Step, ...]:
    """Return the lines that the threads ran, in their order; each as often as it was entered."""
    steps: list[Step] = []
    last: tuple[int, object, int] | None = None
    for point in points:
        here = (point.thread, point.code, point.line)
        if here == last:
            continue
        last = here
        path = Path(point.code.co_filename)
        steps.append(
            Step(
                thread=point.thread,
                path=str(path.relative_to(root)) if path.is_relative_to(root) else str(path),
                line=point.line,
                function=point.code.co_qualname
                if hasattr(point.code, "co_qualname")
                else point.code.co_name,
                source=linecache.getline(point.code.co_filename, point.line).strip(),
            )
        )
    return tuple(steps[:_STEPS_MAX])


def plan_text(plan: Sequence[Turn]) -> str:
    """Return a plan as JSON."""
    return json.dumps([list(turn) for turn in plan])


def reason_of(strange: Strange, base: Baseline, calls: Sequence[str]) -> str:
    """Return what is lost and when, in one sentence."""
    together = " and ".join(f"`{call.removeprefix('subject.')}`" for call in dict.fromkeys(calls))
    if len(set(calls)) == 1:
        together = f"{len(calls)} calls of {together}"
    seen = strange.seen
    if seen is None:
        return f"{together} can wait for one another without end"
    usual = base.outcomes
    for number, text in enumerate(seen.outcome.calls):
        if text.startswith("raised") and all(one.calls[number] != text for one in usual):
            return f"{together} at once: one {text}, which no order of whole calls does"
    if all(one.state != seen.outcome.state for one in usual):
        left, *known = apart([seen.outcome.state, *dict.fromkeys(one.state for one in usual)])
        return (
            f"{together} at once leave `{_cut(left)}`; "
            f"one after the other they leave `{_cut(' or '.join(known))}`"
        )
    gave = _cut("; ".join(seen.outcome.calls))
    return f"{together} at once give what no order of whole calls gives: {gave}"


def apart(texts: Sequence[str]) -> list[str]:
    """Leave out what long texts have in common at both ends, whole parts at a time."""
    if max(map(len, texts)) <= _PLAIN_MAX:
        return list(texts)
    same = texts[0][: _alike(texts)]
    begin = max((found.end() for found in _BEGINS.finditer(same)), default=0)
    rest = [text[begin:] for text in texts]
    same = rest[0][len(rest[0]) - _alike([text[::-1] for text in rest]) :]
    end = len(_ENDS.sub("", same, count=1))
    return [f"{'…' if begin else ''}{text[: len(text) - end]}{'…' if end else ''}" for text in rest]


def _alike(texts: Sequence[str]) -> int:
    """Return how many characters all texts begin with."""
    columns = enumerate(zip(*texts, strict=False))
    return next((at for at, column in columns if len(set(column)) > 1), min(map(len, texts)))


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
