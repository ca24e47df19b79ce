"""The code index of a process: opened when it is first asked, closed with the other services."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.stop_signal import StopSignal
    from cleveragents.infrastructure.code_index.index import StoredCodeIndex
    from cleveragents.infrastructure.code_index.view import TreeView

__all__ = ["LazyCodeIndex", "index_of"]


def index_of(setting: str) -> LazyCodeIndex | None:
    """Return the index that the setting `context_index_folder` means; None when it is off."""
    if setting == "off":
        return None
    return LazyCodeIndex(None if setting == "auto" else Path(setting))


class LazyCodeIndex:
    """A `CodeIndex` that costs nothing until it is asked; share it between threads.

    All callers ask one and the same index, whoever comes first. After `close` it still answers,
    and starts no thread.
    """

    def __init__(self, folder: Path | None = None) -> None:
        #: None means the cache folder of the user.
        self.folder = folder
        self._lock = threading.Lock()  # guards: _index, _closed
        self._index: StoredCodeIndex | None = None
        self._closed = False

    def view(self, request: ContextRequest, stop: StopSignal) -> TreeView:
        """Return the tree as it is now, with the request's overlay."""
        return self.opened().view(request, stop)

    def opened(self) -> StoredCodeIndex:
        """Return the index itself."""
        # Its packages are large, and many commands never look for context.
        from cleveragents.infrastructure.code_index.index import StoredCodeIndex

        fresh = StoredCodeIndex(self.folder)
        with self._lock:
            index = self._index
            if index is None:
                index = self._index = fresh
            closed = self._closed
        if closed:
            index.close()
        return index

    def close(self) -> None:
        """Stop and join the work in the background, if there is any."""
        with self._lock:
            self._closed = True
            index = self._index
        if index is not None:
            index.close()
