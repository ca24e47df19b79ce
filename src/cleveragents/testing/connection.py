"""One connection of a client to the model server: reads requests, sends answers, tells the bill."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
from fractions import Fraction
from http.server import BaseHTTPRequestHandler
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any, Final

from cleveragents.testing.answer import answer_to
from cleveragents.testing.billing import Bill
from cleveragents.testing.dialects import dialect_of
from cleveragents.testing.script import BreakOff, Cut, Garble, Refuse, Wait

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cleveragents.testing.answer import Answer, Part
    from cleveragents.testing.desk import Desk
    from cleveragents.testing.dialects.dialect import Dialect, Refused

#: No read, write or idle connection lasts longer than this.
PATIENCE_S: Final = 30.0
_BODY_BYTES_MAX: Final = 64 * 1024 * 1024
_GARBLED: Final = '{"id": "loopback", "choi'


class ClientGone(Exception):  # noqa: N818  # names what happened; it never leaves this module
    """Nobody is there any more to send to."""


class Connection(BaseHTTPRequestHandler):
    """Answers the requests of one connection, one after the other."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE_S
    disable_nagle_algorithm = True
    desk: Desk
    #: Readable as soon as the server closes.
    asleep: socket.socket

    def do_POST(self) -> None:  # the name that http.server calls
        """Answer one request."""
        try:
            self._answer()
        except (ClientGone, OSError):
            self.close_connection = True
        except Exception as fault:  # noqa: BLE001  # kept for the test, which raises it at the end
            self.desk.report(fault)
            self.close_connection = True
            with contextlib.suppress(OSError):
                self._send_json(500, {"error": {"message": f"The script failed: {fault!r}"}})

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base's name
        """Say nothing: a test reads `asked` and `bills`."""

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        path = self.path.partition("?")[0]
        dialect = dialect_of(path)
        if dialect is None or length > _BODY_BYTES_MAX:
            self.close_connection = True
            self._send_json(404, {"error": {"message": f"Nobody answers at {path}"}})
            return
        raw = self.rfile.read(length)
        if len(raw) < length:
            raise ClientGone  # killed while it asked
        body = json.loads(raw)
        prompt = dialect.read(path, body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = self.desk.receive(dialect, prompt, body, headers)
        reply = self.desk.ask(asked)
        answer = answer_to(asked, reply, tools=prompt.tools, counts=dialect.counts)
        Delivery(self, dialect, answer).run()

    def send_refused(self, refused: Refused, status: int | None = None) -> None:
        """Send a refusal."""
        if isinstance(refused.body, str):
            self.send_body(status or refused.status, refused.body, "text/html")
        else:
            self._send_json(status or refused.status, refused.body, refused.headers)

    def _send_json(
        self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_body(status, json.dumps(body), "application/json", headers)

    def send_body(
        self, status: int, body: str, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send an answer whole."""
        raw = body.encode()
        self.head(status, {**(headers or {}), "Content-Type": kind, "Content-Length": len(raw)})
        self.wfile.write(raw)

    def head(self, status: int, headers: Mapping[str, object]) -> None:
        """Send status and headers."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def chunk(self, text: str) -> None:
        """Send one chunk of a body whose length is not known; an empty one ends it."""
        raw = text.encode()
        self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")

    def drop(self) -> None:
        """Break the connection now."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def pause(self, seconds: float) -> None:
        """Wait; raise `ClientGone` as soon as the client leaves or the server closes."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            selector.register(self.asleep, selectors.EVENT_READ)
            # A client that waits for its answer sends nothing: what can be read is its end.
            if selector.select(seconds):
                raise ClientGone


class Delivery:
    """Sends one answer as its script wants it, and charges for it; lives in one thread."""

    def __init__(self, connection: Connection, dialect: Dialect, answer: Answer) -> None:
        self._connection = connection
        self._dialect = dialect
        self._answer = answer
        #: How much of each part was generated so far.
        self._shares: dict[Part, Fraction] = {}

    def run(self) -> None:
        """Send everything, or as much as the script and the client let us."""
        ending = self._answer.ending
        if isinstance(ending, Refuse):
            self._wait_all(self._answer.flow)
            self._refuse(ending)
            return
        try:
            if self._answer.asked.stream:
                self._stream()
            else:
                self._whole()
        except (ClientGone, OSError):
            self._charge(whole=False)
            raise

    def _refuse(self, ending: Refuse) -> None:
        model = self._answer.asked.model
        refused = self._dialect.refused(ending.why, model, ending.retry_after_s)
        self._connection.send_refused(refused, ending.status)

    def _wait_all(self, flow: Iterable[Part | Wait]) -> None:
        for one in flow:
            if isinstance(one, Wait):
                self._connection.pause(one.seconds)

    def _whole(self) -> None:
        ending = self._answer.ending
        self._wait_all(self._answer.flow)
        if isinstance(ending, BreakOff):
            self._refuse(Refuse(ending.why))
            return
        # The model has worked, whatever becomes of the answer on its way.
        self._shares = dict.fromkeys(self._answer.parts, Fraction(1))
        if isinstance(ending, Garble):
            self._charge(whole=False)
            self._connection.send_body(200, _GARBLED, "application/json")
            return
        body = json.dumps(self._dialect.whole(self._answer))
        if isinstance(ending, Cut):
            self._charge(whole=False)
            if ending.after_events != 0:
                self._connection.head(
                    200, {"Content-Type": "application/json", "Content-Length": len(body)}
                )
                self._connection.wfile.write(body[: len(body) // 2].encode())
            self._connection.drop()
            return
        # Charged before it is sent, so that whoever has the answer finds the bill.
        self._charge(whole=True)
        self._connection.send_body(200, body, "application/json")

    def _stream(self) -> None:
        ending = self._answer.ending
        frames = self._frames()
        if isinstance(ending, Cut):
            self._cut(ending, frames)
            return
        self._begin(frames)
        if isinstance(ending, BreakOff):
            self._charge(whole=False)
            self._connection.chunk(self._dialect.error_event(ending.why, self._answer))
        elif isinstance(ending, Garble):
            self._charge(whole=False)
            self._connection.chunk(f"event: message\ndata: {_GARBLED}\n\n")
        else:
            closing = list(self._dialect.closing(self._answer))
            for text in closing[:-1]:
                self._connection.chunk(text)
            self._charge(whole=True)
            self._connection.chunk(closing[-1])
        self._connection.chunk("")

    def _cut(self, ending: Cut, frames: Iterator[str]) -> None:
        if ending.after_events is not None:
            every = chain(frames, self._dialect.closing(self._answer))
            frames = islice(every, ending.after_events)
        if ending.after_events != 0 or ending.clean:
            self._begin(frames)
        self._charge(whole=False)
        if ending.clean:
            self._connection.chunk("")
        else:
            self._connection.drop()

    def _begin(self, frames: Iterator[str]) -> None:
        # The status is sent with the first event: a wait before it keeps the client waiting.
        first = next(frames, None)
        headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
        self._connection.head(200, {**headers, "Transfer-Encoding": "chunked"})
        for text in chain(() if first is None else (first,), frames):
            self._connection.chunk(text)

    def _frames(self) -> Iterator[str]:
        """Yield opening and content, with the waits where they stand."""
        waits = list(takewhile(lambda one: isinstance(one, Wait), self._answer.flow))
        self._wait_all(waits)
        yield from self._dialect.opening(self._answer)
        for one in self._answer.flow[len(waits) :]:
            if isinstance(one, Wait):
                self._connection.pause(one.seconds)
                continue
            events = list(self._dialect.content(self._answer, one))
            for number, text in enumerate(events, 1):
                self._shares[one] = Fraction(number, len(events))
                yield text

    def _charge(self, *, whole: bool) -> None:
        answer = self._answer
        told = answer.told if whole else None
        self._connection.desk.charge(
            Bill(
                number=answer.asked.number,
                protocol=answer.asked.protocol,
                model=answer.asked.model,
                usage=answer.charged_for(self._shares),
                raw=None if told is None else self._dialect.raw_usage(told),
                whole=whole,
            )
        )
