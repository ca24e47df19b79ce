"""A module keeps clients in a dict: two first callers get two clients of one name."""

from __future__ import annotations


class Client:
    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: list[str] = []


_clients: dict[str, Client] = {}


def get_client(name: str) -> Client:
    if name not in _clients:
        _clients[name] = Client(name)
    return _clients[name]


def send(name: str, message: str) -> int:
    client = get_client(name)
    client.sent.append(message)
    return len(client.sent)


def close(name: str) -> bool:
    if name in _clients:
        _clients.pop(name)
        return True
    return False
