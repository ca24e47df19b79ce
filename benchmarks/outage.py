"""Count what reaches a provider that is down for four seconds while fifty actors want it.

A real HTTP server on 127.0.0.1 answers 429 with `Retry-After: 1` during the outage.
The actors call it all the time, so the outage meets them in the middle of their work.
Each way of retrying runs on its own server: full-jitter backoff per call (base 0.5 s, cap 8 s,
the figures of the openai SDK), per-call waiting for Retry-After, and the shared gate.
"""

from __future__ import annotations

import http.client
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from cleveragents.application.services.provider_gate import ProviderGate

ACTORS: Final = 50
WARM_UP_S: Final = 1.0
OUTAGE_S: Final = 4.0
LATENCY_S: Final = 0.02
THINK_S: Final = 0.6
RETRY_AFTER_S: Final = 1.0
BACKOFF_S: Final = 0.5
BACKOFF_S_MAX: Final = 8.0
#: No run may last longer, whatever happens.
GIVE_UP_S: Final = 40.0

HITS_MAX: Final = 15
SHARE_MAX: Final = 0.1


@dataclass
class Provider:
    """The server's view: when it is down, and what reached it meanwhile."""

    down_from: float = field(default_factory=lambda: time.monotonic() + WARM_UP_S)
    lock: threading.Lock = field(default_factory=threading.Lock)  # guards: hits
    hits: int = 0

    @property
    def up_again(self) -> float:
        """When the outage ends."""
        return self.down_from + OUTAGE_S

    def answer(self) -> int:
        """Return the status of one request, and count it if it came during the outage."""
        if not self.down_from <= time.monotonic() < self.up_again:
            return 200
        with self.lock:
            self.hits += 1
        return 429


class Server(ThreadingHTTPServer):
    """A provider behind HTTP."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        self.provider = Provider()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """Answers after a short while, as a model would."""

    server: Server

    def do_GET(self) -> None:
        """Answer one call."""
        status = self.server.provider.answer()
        time.sleep(LATENCY_S)
        self.send_response(status)
        self.send_header("Retry-After", str(int(RETRY_AFTER_S)))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as declared there
        """Say nothing."""


def call(port: int) -> int:
    """Make one request; return its status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/")
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


#: Makes one call succeed, however long that takes.
Way = Callable[[int], None]


def jittered(port: int) -> None:
    """Full jitter, each call for itself."""
    attempt = 0
    while call(port) == 429:
        time.sleep(random.random() * min(BACKOFF_S_MAX, BACKOFF_S * 2**attempt))
        attempt += 1


def obedient(port: int) -> None:
    """Wait for Retry-After, each call for itself."""
    while call(port) == 429:
        time.sleep(RETRY_AFTER_S)


def gated() -> Way:
    """Wait at one gate, all together."""
    gate = ProviderGate()

    def work(port: int) -> None:
        while True:
            with gate.enter("provider", timeout_s=GIVE_UP_S) as admitted:
                if call(port) != 429:
                    admitted.ok()
                    return
                admitted.limited(RETRY_AFTER_S)

    return work


@dataclass(frozen=True)
class Outcome:
    """What one way did."""

    hits: int
    last_through_s: float


def run(way: Way) -> Outcome:
    """Let all actors work through one outage; each ends with its first success after it."""
    server = Server()
    serving = threading.Thread(target=server.serve_forever, name="ca-provider")
    serving.start()
    provider, port = server.provider, server.server_address[1]
    ends: list[float] = [0.0] * ACTORS

    def act(number: int) -> None:
        time.sleep(THINK_S * number / ACTORS)
        while ends[number] < provider.up_again:
            way(port)
            ends[number] = time.monotonic()
            time.sleep(THINK_S if ends[number] < provider.up_again else 0)

    actors = [threading.Thread(target=act, args=(n,), name=f"ca-actor-{n}") for n in range(ACTORS)]
    for actor in actors:
        actor.start()
    for actor in actors:
        actor.join(GIVE_UP_S)
    server.shutdown()
    serving.join()
    server.server_close()
    return Outcome(provider.hits, max(ends) - provider.up_again)


def main() -> int:
    """Print the table; return 1 when a goal is missed."""
    ways: dict[str, Way] = {
        "full jitter per call": jittered,
        "Retry-After per call": obedient,
        "shared gate": gated(),
    }
    found = {name: run(way) for name, way in ways.items()}
    anchor = found["full jitter per call"].hits
    print(f"{ACTORS} actors, outage of {OUTAGE_S:.0f} s")
    print(f"{'way':<22} {'requests into it':>17} {'ratio':>7} {'last actor through':>19}")
    for name, outcome in found.items():
        ratio = outcome.hits / anchor
        print(f"{name:<22} {outcome.hits:>17} {ratio:>6.2f}x {outcome.last_through_s:>+17.2f} s")
    gate = found["shared gate"]
    met = gate.hits <= HITS_MAX and gate.hits <= SHARE_MAX * anchor
    print(
        f"goal: at most {HITS_MAX} requests and {SHARE_MAX}x of full jitter:"
        f" {'met' if met else 'MISSED'}"
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
