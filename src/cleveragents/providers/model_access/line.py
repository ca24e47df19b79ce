"""The line to the models: one thread, one event loop, all clients, for callers in any thread."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import TYPE_CHECKING

from cleveragents.domain.errors import RequestError
from cleveragents.providers.model_access.access import access_to
from cleveragents.providers.model_access.adapters import load
from cleveragents.providers.model_access.billing import CallFailed
from cleveragents.providers.model_access.call import Answer, Call
from cleveragents.providers.model_access.desk import Desk, Ticket
from cleveragents.providers.model_access.token_bound import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["Answer", "Call", "CallFailed", "ModelLine"]


class ModelLine:
    """Carries calls to models; share one between all threads, and close it at the end.

    Clients of SDKs belong to one event loop: theirs runs in a thread of the line's own, from the
    first call to `close`. Each call is one request, never repeated by an SDK: every retry is the
    caller's, admitted and paid for like the first.
    `on_text` is called in the caller's own thread, so that a slow listener delays nobody else.
    """

    def __init__(self, keys: Mapping[str, str] | None = None) -> None:
        self._keys: Mapping[str, str] = os.environ if keys is None else dict(keys)
        self._lock = threading.Lock()  # guards: _desk, _closed
        self._desk: Desk | None = None
        self._closed = False

    def check(self, model: str, base_url: str | None = None) -> None:
        """Refuse, before money is reserved, what cannot be asked: no such name, key or package."""
        load(access_to(model, base_url, self._keys).name.provider)

    def request(
        self,
        call: Call,
        *,
        stop: StopSignal | None = None,
        on_text: Callable[[str], object] | None = None,
    ) -> Answer:
        """Ask a model and wait for its whole answer; pass on its text as it comes.

        A stop ends the call at once with `Stopped`. What fails is raised as `CallFailed`,
        which says what is known about the bill.
        """
        if stop is not None:
            stop.raise_if_stopped()
        access = access_to(call.model, call.base_url, self._keys)
        load(access.name.provider)  # here, because an import would hold up the loop
        ticket = Ticket(call, access, digest_of(call), tells=on_text is not None)
        desk = self._post(ticket)
        forget = stop.when_stopped(partial(desk.cancel, ticket)) if stop is not None else None
        try:
            return ticket.wait(on_text)
        except BaseException:
            # Also when the caller was interrupted, or its listener raised: nobody hears the rest.
            desk.cancel(ticket, "the caller left")
            raise
        finally:
            if forget is not None:
                forget()

    def close(self) -> None:
        """End all calls with `Stopped`, close the clients, end the thread; again does nothing."""
        with self._lock:
            self._closed = True
            desk = self._desk
        if desk is not None:
            desk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _post(self, ticket: Ticket) -> Desk:
        """Hand a call to the loop; under the lock, so that none comes after the loop's last.

        Neither waits: a thread is started, and a call is put into the loop's list.
        """
        with self._lock:
            if self._closed:
                raise RequestError(
                    "The line to the models is closed and takes no more calls",
                    code="CA6101",
                    hint="Close the line only after the last call",
                )
            if self._desk is None:
                self._desk = Desk()
            self._desk.post(ticket)
            return self._desk
