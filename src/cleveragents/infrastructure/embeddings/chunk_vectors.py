"""Finds chunks by their meaning, and keeps their vectors beside the code index."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

from cleveragents.application.code_index import ChunkHit
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.infrastructure.code_index.storage import Storage, cache_folder
from cleveragents.infrastructure.embeddings.static_model import SCALE, StaticModel, loaded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from numpy.typing import NDArray

    from cleveragents.application.code_index import CodeView

    Vectors = NDArray[np.int8]

__all__ = ["ChunkVectors"]

#: How long a request may embed what is new; the rest is done in the background.
_REQUEST_S: Final = 0.5
#: Vectors are kept in portions of so many contents.
_PORTION: Final = 32
#: More contents than these stay in memory only if the tree that is looked at holds them.
_CONTENTS_MAX: Final = 50_000
#: How many trees wait for the background; who asks again is listed again.
_UNFINISHED_MAX: Final = 8
#: How many rows are multiplied at once: they take four times the room meanwhile.
_ROWS: Final = 8192
_CLOSE_S: Final = 10.0
_DAY_S: Final = 86_400


class ChunkVectors:
    """A `ChunkSearch` by a model in a folder of the user; share it between threads.

    The model is read when it is first needed. Vectors are computed once for each content: within
    a limit by who asks, the rest by one thread in the background, which ends when nothing is
    left. They are kept in the file of the code index, under the hash of the content and the
    fingerprint of the model. Two callers may compute the same at once, with the same result.
    """

    def __init__(
        self, model: Path, folder: Path | None = None, *, request_s: float = _REQUEST_S
    ) -> None:
        self._folder = model
        self._storage = Storage(cache_folder() if folder is None else folder)
        self._request_s = request_s
        self._stop = StopSignal()
        self._lock = threading.Lock()  # guards: _model, _kept, _unfinished, _thread, _closed
        self._model: StaticModel | None = None
        self._kept: Mapping[bytes, Vectors] = {}  # replaced as a whole, never changed
        self._unfinished: tuple[CodeView, ...] = ()
        self._thread: threading.Thread | None = None
        self._closed = False

    def chunks_near(
        self, view: CodeView, text: str, limit: int, stop: StopSignal
    ) -> list[ChunkHit]:
        """Return chunks that mean more of what the text means than the tree's middle one does."""
        asked = self._opened().vectors([text])[0]
        known, left = self._known(view, stop, self._request_s)
        if left:
            self._finish_later(view)
        return _hits(view, known, asked, limit) if asked.any() else []

    def embed(self, view: CodeView, stop: StopSignal, budget_s: float) -> int:
        """Compute what is missing of a tree; return how many contents are left for later."""
        return self._known(view, stop, budget_s)[1]

    def _known(
        self, view: CodeView, stop: StopSignal, budget_s: float
    ) -> tuple[Mapping[bytes, Vectors], int]:
        """Return the vectors of a tree, and how many contents the time was too short for."""
        until_s, day = time.monotonic() + budget_s, int(time.time() // _DAY_S)
        model = self._opened()
        with self._lock:
            kept = self._kept
        alive = _paths_of(view)
        # A copy: what others keep meanwhile may push it out of memory.
        known = {key: kept[key] for key in alive if key in kept}
        missing = sorted(alive.keys() - known.keys())
        if missing:
            found = _rows_of(self._storage.vectors(model.fingerprint, missing, day=day), model)
            self._keep(found, alive.keys())
            known |= found
            missing = sorted(alive.keys() - known.keys())
        while missing:
            some, missing = missing[:_PORTION], missing[_PORTION:]
            new = {key: _embedded(model, view, alive[key], stop) for key in some}
            made = {key: rows for key, rows in new.items() if rows is not None}
            packed = {key: rows.tobytes() for key, rows in made.items()}
            self._storage.keep_vectors(model.fingerprint, packed, day=day)
            self._keep(made, alive.keys())
            known |= made
            if time.monotonic() >= until_s:
                break
        return known, len(missing)

    def close(self, timeout_s: float = _CLOSE_S) -> None:
        """Stop and join the work in the background; what it did so far is kept."""
        with self._lock:
            self._closed = True
            self._unfinished = ()
            thread = self._thread
        self._stop.stop("the vectors were closed")
        # One that is about to start finds nothing to do, and ends.
        if thread is not None and thread.ident is not None:
            thread.join(timeout_s)

    # -- what is in memory ---------------------------------------------------------------

    def _opened(self) -> StaticModel:
        with self._lock:
            known = self._model
        return self._published(loaded(self._folder)) if known is None else known

    def _published(self, fresh: StaticModel) -> StaticModel:
        """Return the one model of all callers: that of who came first."""
        with self._lock:
            if self._model is None:
                self._model = fresh
            return self._model

    def _keep(self, new: Mapping[bytes, Vectors], alive: AbstractSet[bytes]) -> None:
        with self._lock:
            whole = {**self._kept, **new}
            if len(whole) > _CONTENTS_MAX:
                whole = {key: rows for key, rows in whole.items() if key in alive}
            self._kept = whole

    # -- the work in the background ------------------------------------------------------

    def _finish_later(self, view: CodeView) -> None:
        thread = threading.Thread(target=self._finish, name="ca-embeddings")
        if self._enlist(view, thread):
            thread.start()

    def _enlist(self, view: CodeView, thread: threading.Thread) -> bool:
        """Note a tree with work left; say whether the thread is to be started for it."""
        with self._lock:
            if self._closed:
                return False
            self._unfinished = (*self._unfinished[1 - _UNFINISHED_MAX :], view)
            if self._thread is not None:
                return False
            self._thread = thread
            return True

    def _next(self) -> CodeView | None:
        """Take the newest tree to work on; without one the thread is no longer there."""
        with self._lock:
            if not self._unfinished:
                self._thread = None
                return None
            *others, view = self._unfinished
            self._unfinished = tuple(others)
            return view

    def _finish(self) -> None:
        while (view := self._next()) is not None:
            try:
                self.embed(view, self._stop, float("inf"))
            except (Exception, Stopped):  # noqa: BLE001, S112  # the next request tries again
                continue


def _paths_of(view: CodeView) -> dict[bytes, list[str]]:
    """Return the files of each content."""
    paths: dict[bytes, list[str]] = {}
    for path in view.paths:
        key = view.content(path)
        if key is not None:
            paths.setdefault(key, []).append(path)
    return paths


def _rows_of(packed: Mapping[bytes, bytes], model: StaticModel) -> dict[bytes, Vectors]:
    return {
        key: np.frombuffer(body, np.int8).reshape(-1, model.dimensions)
        for key, body in packed.items()
    }


def _embedded(
    model: StaticModel, view: CodeView, paths: Sequence[str], stop: StopSignal
) -> Vectors | None:
    """Return the vectors of a content's chunks; None if no file holds it any more."""
    for path in paths:
        stop.raise_if_stopped()
        text, card = view.text(path), view.card(path)
        if text is not None and card is not None:
            lines = text.split("\n")
            return model.vectors(["\n".join(lines[start - 1 : end]) for start, end in card.chunks])
    return None


def _hits(
    view: CodeView, kept: Mapping[bytes, Vectors], asked: Vectors, limit: int
) -> list[ChunkHit]:
    paths = _paths_of(view)
    keys = [key for key in sorted(paths) if key in kept]
    if not keys:
        return []
    scores = _scores([kept[key] for key in keys], asked)
    # What all code has in common says nothing: the middle of the tree counts as 0.
    scores -= np.median(scores)
    starts = list(accumulate((len(kept[key]) for key in keys), initial=0))
    hits: list[ChunkHit] = []
    for at in _best(scores, limit):
        owner = bisect_right(starts, at) - 1
        for path in paths[keys[owner]]:
            card = view.card(path)
            if card is not None:
                start, end = card.chunks[at - starts[owner]]
                hits.append(ChunkHit(path, start, end, float(scores[at]) / SCALE**2))
    hits.sort(key=lambda hit: (-hit.score, hit.path, hit.start_line))
    return hits[:limit]


def _scores(parts: Sequence[Vectors], asked: Vectors) -> NDArray[np.float32]:
    """Multiply vectors: sums of products of such whole numbers are exact, in whatever order."""
    rows = np.concatenate(parts)
    wide = asked.astype(np.float32)
    return np.concatenate(
        [rows[at : at + _ROWS].astype(np.float32) @ wide for at in range(0, len(rows), _ROWS)]
    )


def _best(scores: NDArray[np.float32], limit: int) -> list[int]:
    """Return the places of the best scores above 0, and of all that are equal to the last."""
    found = np.flatnonzero(scores > 0)
    if len(found) > limit:
        least = np.partition(scores[found], len(found) - limit)[len(found) - limit]
        found = found[scores[found] >= least]
    return [int(at) for at in found]
