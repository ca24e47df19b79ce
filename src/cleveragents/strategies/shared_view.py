"""One view of the code for all strategies of a request."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cleveragents.application.code_index import CodeIndex, CodeView
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["SharedView"]

#: How many requests' views are kept; one more is made again for who comes late.
_REQUESTS_MAX: Final = 16
#: How often a waiting caller looks whether it was stopped.
_LOOK_S: Final = 0.05


class _Slot:
    __slots__ = ("made", "request", "view")

    def __init__(self, request: ContextRequest) -> None:
        self.request = request
        self.made = threading.Event()
        self.view: CodeView | None = None  # written once, before `made` is set; None: it failed


class SharedView:
    """A `CodeIndex` that looks at the tree once for each request object, not once per strategy.

    Who comes first makes the view, the others wait for it; if that fails they make their own.
    A request object stands for one moment: to see later changes ask with a new one, as the
    pipeline does for each build.
    """

    def __init__(self, index: CodeIndex) -> None:
        self._index = index
        self._lock = threading.Lock()  # guards: _slots
        self._slots: tuple[_Slot, ...] = ()  # the newest last

    def view(self, request: ContextRequest, stop: StopSignal) -> CodeView:
        """Return the view of this request, made by whoever asks first."""
        slot, is_first = self._slot(request)
        if is_first:
            return self._make(slot, stop)
        while not slot.made.wait(_LOOK_S):
            stop.raise_if_stopped()
        return self._index.view(request, stop) if slot.view is None else slot.view

    def _slot(self, request: ContextRequest) -> tuple[_Slot, bool]:
        """Return the place of the request's view, and whether the caller is to make it."""
        fresh = _Slot(request)
        with self._lock:
            for slot in self._slots:
                if slot.request is request:
                    return slot, False
            self._slots = (*self._slots[1 - _REQUESTS_MAX :], fresh)
        return fresh, True

    def _make(self, slot: _Slot, stop: StopSignal) -> CodeView:
        try:
            view = slot.view = self._index.view(slot.request, stop)
        finally:
            slot.made.set()
        return view
