"""The files that a request names, and those that its task mentions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.application.source_tree import locate, read_text, text_of
from cleveragents.domain.fragment import Fragment, version_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.application.code_index import CodeIndex
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["ExplicitFiles"]

#: `File "src/app.py", line 12` of a traceback, `src/app.py:12` and `src/app.py`.
_MENTION: Final = re.compile(
    r'File "(?P<traced>[^"\n]+)", line (?P<at>\d+)|(?P<path>[\w@+~./-]+)(?::(?P<line>\d+))?'
)
_NAMED_SCORE: Final = 2.0
_MENTIONED_SCORE: Final = 1.0
#: A pasted log must not turn into a thousand searches.
_MENTIONS_MAX: Final = 200
#: More files than these with the same end of their path are not what was meant.
_ALIKE_MAX: Final = 3
_LINES_AROUND: Final = 15
_DIGITS_MAX: Final = 9


@dataclass(frozen=True, slots=True)
class _Mention:
    name: str
    #: 0 for the whole file.
    line: int
    score: float
    reason: str


class ExplicitFiles:
    """Finds files by name: what the user points at comes first.

    A name with a line (`src/app.py:12`, a traceback) finds the lines around it. With an index,
    the end of a path is enough. A name that leads out of the root, also through a link, finds
    nothing. It keeps no state of a request, so threads may share one.
    """

    name: Final = "explicit-files"
    #: What the user points at outranks what all others together guess.
    weight: Final = 6

    def __init__(self, index: CodeIndex | None = None) -> None:
        self._index = index

    def find(self, request: ContextRequest, stop: StopSignal) -> Iterator[Fragment]:
        """Yield each place once, the named files as better than the mentioned ones."""
        mentions = list(_mentions(request))
        tree: tuple[str, ...] | None = None
        seen = set()
        for mention in mentions:
            stop.raise_if_stopped()
            found = _located(request, mention.name)
            if not found and self._index is not None:
                tree = self._index.view(request, stop).paths if tree is None else tree
                found = _ending(tree, mention.name)
            for path in found:
                text = None if (path, mention.line) in seen else _text(request, path)
                seen.add((path, mention.line))
                if text is not None:
                    yield self._fragment(path, text, mention)

    def _fragment(self, path: str, whole: str, mention: _Mention) -> Fragment:
        lines, version = whole.split("\n"), version_of(whole)
        first, last, reason = 1, len(lines), mention.reason
        if 1 <= mention.line <= last:  # a line that is gone says nothing
            first = max(first, mention.line - _LINES_AROUND)
            last = min(last, mention.line + _LINES_AROUND)
            reason = f"line {mention.line} is {reason}"
        text = "\n".join(lines[first - 1 : last])
        return Fragment(path, first, last, text, mention.score, self.name, reason, version)


def _mentions(request: ContextRequest) -> Iterator[_Mention]:
    for path in request.files:
        yield _Mention(path, 0, _NAMED_SCORE, "named in the request")
    told: dict[tuple[str, int], None] = {}
    for match in _MENTION.finditer(request.task):
        name = match["traced"] or match["path"].rstrip(".")
        # A word alone is no name of a file.
        if "." in name or "/" in name:
            told[name, int((match["at"] or match["line"] or "0")[:_DIGITS_MAX])] = None
        if len(told) == _MENTIONS_MAX:
            break
    for name, line in told:
        yield _Mention(name, line, _MENTIONED_SCORE, "mentioned in the task")


def _located(request: ContextRequest, name: str) -> tuple[str, ...]:
    if request.overlay is not None and name in request.overlay.changed():
        return (name,)
    path = locate(request.root, name)
    return () if path is None else (path,)


def _ending(tree: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return the files whose paths end with as much of the name as any does."""
    parts = [part for part in name.split("/") if part not in {"", ".", ".."}]
    for at in range(len(parts)):
        end = "/".join(parts[at:])
        found = tuple(path for path in tree if path == end or path.endswith(f"/{end}"))
        if found:
            return found if len(found) <= _ALIKE_MAX else ()
    return ()


def _text(request: ContextRequest, path: str) -> str | None:
    changed = {} if request.overlay is None else request.overlay.changed()
    if path in changed:
        content = changed[path]
        return None if content is None else text_of(content)
    return read_text(request.root.resolve() / path)
