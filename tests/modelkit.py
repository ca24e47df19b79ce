"""What tests of model access share: protocols, short calls, a server of one fixed answer."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.tools import ToolDefinition

from cleveragents.providers.model_access.line import Call

#: A model of each protocol, and the property of `ModelServer` that is its address.
PROTOCOLS = {
    "chat": ("openai:gpt-5.2", "openai_url"),
    "compatible": ("openai:qwen3", "compatible_url"),
    "responses": ("openai-responses:gpt-5.2", "openai_url"),
    "anthropic": ("anthropic:claude-sonnet-5-5", "anthropic_url"),
    "google": ("google:gemini-3.5-flash", "url"),
}

LOOK = ToolDefinition(
    name="look",
    description="Look at a thing",
    parameters_json_schema={
        "type": "object",
        "properties": {"thing": {"type": "string"}},
        "required": ["thing"],
    },
)


def asking(text, **options):
    return [ModelRequest(parts=[UserPromptPart(text)], **options)]


def call_to(server, protocol="chat", text="hello", **options):
    model, url = PROTOCOLS[protocol]
    options = {
        "model": model,
        "messages": asking(text),
        "tokens_max": 500,
        "base_url": getattr(server, url, None),
        "timeout_s": 20.0,
        **options,
    }
    return Call(**options)


class FixedServer:
    """Answers every request with one body; remembers paths, headers and bodies.

    With `more` it promises so many bytes that never come, and waits until the client leaves.
    """

    def __init__(self, status, body, kind, more):
        self.requests = []
        fixed = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers.get("Content-Length") or 0)
                asked = json.loads(self.rfile.read(length) or b"{}")
                fixed.requests.append((self.path, dict(self.headers.items()), asked))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body) + more))
                self.end_headers()
                self.wfile.write(body)
                if more:
                    self.rfile.read(1)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="ca-fixed-server"
        )
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def fixed(status, body, kind="application/json", *, more=0):
    server = FixedServer(status, body.encode(), kind, more)
    try:
        yield server
    finally:
        server.close()


def events(*chunks):
    """Write a stream as OpenAI's protocol has it."""
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def chunk(delta, *, finish=None, usage=None):
    """Write one event of a stream, as Groq and Mistral send it too."""
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "it",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        # Mistral's place for it, and Groq's
        **({"usage": usage, "x_groq": {"id": "1", "usage": usage}} if usage else {}),
    }
