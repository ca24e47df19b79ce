"""The lock of the module covers the look, the making and the sending."""

from __future__ import annotations

import threading


class Client:
    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: list[str] = []


_clients: dict[str, Client] = {}
_clients_lock = threading.RLock()


def get_client(name: str) -> Client:
    with _clients_lock:
        if name not in _clients:
            _clients[name] = Client(name)
        return _clients[name]


def send(name: str, message: str) -> int:
    with _clients_lock:
        client = get_client(name)
        client.sent.append(message)
        return len(client.sent)


def close(name: str) -> bool:
    with _clients_lock:
        return _clients.pop(name, None) is not None
