"""A model provider on loopback: real protocols, scripted answers, exact bills; no key, no cost."""

from __future__ import annotations

import contextlib
import selectors
import socket
import socketserver
import threading
from typing import TYPE_CHECKING, Any, Final, Self

from cleveragents.domain.errors import InternalError
from cleveragents.testing.connection import Connection
from cleveragents.testing.desk import Desk

if TYPE_CHECKING:
    from types import TracebackType

    from cleveragents.testing.billing import Bill
    from cleveragents.testing.desk import Script
    from cleveragents.testing.script import Asked

_JOIN_S: Final = 10.0


class ModelServer:
    """A server for the protocols of OpenAI, Anthropic and Google on 127.0.0.1; a context manager.

    The script is a function from what is asked to what is answered; it is called by the threads of
    the connections, several at once. Or it is a list of replies, given in the order of arrival;
    or such a list for each model (under "" for all others).
    `asked` and `bills` may be read at any time, by any thread: whoever has got an answer whole
    finds its bill. `close` ends every connection and every thread, and raises what the script
    raised; it may be called more than once.
    """

    def __init__(self, script: Script) -> None:
        self._desk = Desk(script)
        # Every wait of a connection looks at one end; closing the other ends the wait.
        self._awake, asleep = socket.socketpair()
        self._listener = _Listener(self._desk, asleep)
        self._acceptor = threading.Thread(target=self._listener.accept_all, name="ca-model-server")
        self._acceptor.start()

    @property
    def url(self) -> str:
        """The address of the server; Google's clients take it as it is."""
        host, port = self._listener.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def openai_url(self) -> str:
        """The base address for clients of OpenAI."""
        return f"{self.url}/v1"

    @property
    def compatible_url(self) -> str:
        """The base address of a server that speaks like OpenAI and refuses in its own words."""
        return f"{self.url}/compatible/v1"

    @property
    def anthropic_url(self) -> str:
        """The base address for clients of Anthropic."""
        return self.url

    @property
    def asked(self) -> tuple[Asked, ...]:
        """All requests so far, in the order of arrival."""
        return self._desk.asked

    @property
    def bills(self) -> tuple[Bill, ...]:
        """What is charged so far, in the order of the requests."""
        return self._desk.bills

    def wait_for(self, *, asked: int = 0, bills: int = 0, timeout_s: float = 10.0) -> None:
        """Wait until so many requests have come and so many bills are written."""
        self._desk.wait_for(asked=asked, bills=bills, timeout_s=timeout_s)

    def close(self) -> None:
        """End every connection and join every thread; then raise what the script raised."""
        if self._acceptor.is_alive():
            self._awake.close()
            self._acceptor.join(_JOIN_S)
            self._listener.server_close()
            self._listener.end_connections()
        for fault in self._desk.faults[:1]:
            raise fault

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except Exception as fault:
            if error is None:
                raise
            # What the test met comes of the script's fault, or matters more.
            error.add_note(f"The script of the model server failed too: {fault!r}")


class _Listener(socketserver.TCPServer):
    """Takes connections, one thread for each; ends them all before it is closed."""

    request_queue_size = 256
    #: `handle_request` is called when somebody is there.
    timeout = 0

    def __init__(self, desk: Desk, asleep: socket.socket) -> None:
        self._asleep = asleep
        handler = type("_Connection", (Connection,), {"desk": desk, "asleep": asleep})
        self._threads_lock = threading.Lock()  # guards: _open
        self._open: dict[threading.Thread, socket.socket] = {}
        super().__init__(("127.0.0.1", 0), handler)

    def accept_all(self) -> None:
        """Take connections until the server closes."""
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            asleep = selector.register(self._asleep, selectors.EVENT_READ)
            while asleep not in [key for key, _ in selector.select()]:
                self.handle_request()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own."""
        thread = threading.Thread(
            target=self._serve, args=(request, client_address), name="ca-model-connection"
        )
        with self._threads_lock:
            self._open[thread] = request
        thread.start()

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        try:
            # A client that leaves while its request is read is none of our faults.
            with contextlib.suppress(OSError):
                self.finish_request(request, client_address)
        finally:
            with self._threads_lock:
                del self._open[threading.current_thread()]
            self.shutdown_request(request)

    def end_connections(self) -> None:
        """Break what is open and wait for its threads; the listener takes no more by now."""
        with self._threads_lock:
            still = dict(self._open)
        for connection in still.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in still:
            thread.join(_JOIN_S)
        self._asleep.close()
        stuck = [thread.name for thread in still if thread.is_alive()]
        if stuck:
            raise InternalError(f"Connections of the model server did not end: {stuck}")
