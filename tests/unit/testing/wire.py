"""A plain client for the model server's tests: bytes in, bytes out, no SDK."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from urllib.parse import urlsplit

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-compatible": "/compatible/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "google": "/v1beta/models/small:generateContent",
}
STREAM_PATHS = {**PATHS, "google": "/v1beta/models/small:streamGenerateContent?alt=sse"}
PROTOCOLS = tuple(PATHS)


@dataclass(frozen=True)
class Got:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def events(self):
        """The events of a stream as (name, data); data that is JSON is read."""
        found = []
        for block in self.text.replace("\r\n", "\n").strip().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.split("\n"))
            data = lines["data"]
            found.append((lines.get("event"), json.loads(data) if data[0] == "{" else data))
        return found


def body_of(protocol, text="Hello", *, max_tokens=1_000, stream=False):
    if protocol == "google":
        return {
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "generationConfig": {"maxOutputTokens": max_tokens},
        }
    if protocol == "openai-responses":
        limit = {"max_output_tokens": max_tokens}
        return {"model": "small", "input": text, "stream": stream, **limit}
    said = {"model": "small", "messages": [{"role": "user", "content": text}], "stream": stream}
    options = {} if protocol == "anthropic" else {"stream_options": {"include_usage": True}}
    return {**said, "max_tokens": max_tokens, **options}


def connect(server, timeout_s=10):
    where = urlsplit(server.url)
    return http.client.HTTPConnection(where.hostname, where.port, timeout=timeout_s)


def send(connection, path, body):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, raw, {"Content-Type": "application/json", "X-Test": "yes"})


def receive(connection):
    with connection.getresponse() as response:
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Got(response.status, headers, response.read().decode())


def ask(server, protocol, body=None, *, stream=False, **options):
    connection = connect(server)
    try:
        path = (STREAM_PATHS if stream else PATHS)[protocol]
        send(connection, path, body or body_of(protocol, stream=stream, **options))
        return receive(connection)
    finally:
        connection.close()


def usage_in(protocol, got, *, stream):
    """Find the usage where the protocol puts it."""
    if not stream:
        return got.json["usageMetadata" if protocol == "google" else "usage"]
    data = [one for _, one in got.events]
    if protocol == "google":
        return data[-1]["usageMetadata"]
    if protocol == "openai-responses":
        return data[-1]["response"]["usage"]
    return data[-2]["usage"]
