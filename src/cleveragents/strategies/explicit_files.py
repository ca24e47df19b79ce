"""The files that a request names, and those that its task mentions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cleveragents.domain.fragment import Fragment
from cleveragents.strategies.source_tree import locate, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["ExplicitFiles"]

#: A run of the characters of paths; `src/app.py:12` mentions `src/app.py`.
_RUN: Final = re.compile(r"[\w@+~./-]+")
_NAMED_SCORE: Final = 2.0
_MENTIONED_SCORE: Final = 1.0


class ExplicitFiles:
    """Finds whole files by name: what the user points at comes first.

    A name that leads out of the root, also through a link, finds nothing.
    It keeps no state, so threads may share one.
    """

    name: Final = "explicit-files"
    #: What the user points at outranks what others guess, unless many of them agree.
    weight: Final = 4

    def find(self, request: ContextRequest, stop: StopSignal) -> Iterator[Fragment]:
        """Yield each file once, the named ones as better than the mentioned ones."""
        named = [(path, _NAMED_SCORE, "named in the request") for path in request.files]
        mentioned = [
            (run.rstrip("."), _MENTIONED_SCORE, "mentioned in the task")
            for run in dict.fromkeys(_RUN.findall(request.task))
            if "." in run or "/" in run  # a word alone is no name of a file
        ]
        seen = set()
        for name, score, reason in named + mentioned:
            stop.raise_if_stopped()
            path = locate(request.root, name)
            if path is None or path in seen:
                continue
            seen.add(path)
            text = read_text(request.root.resolve() / path)
            if text is not None:
                yield Fragment(path, 1, text.count("\n") + 1, text, score, self.name, reason)
