"""A reload makes a new dict and puts it in place at once; a reader takes the reference once."""

from __future__ import annotations


class Config:
    def __init__(self) -> None:
        self._values: dict[str, str] = {"host": "localhost", "port": "80"}

    def reload(self, host: str = "example.org", port: str = "443") -> None:
        self._values = {"host": host, "port": port}

    def address(self) -> str:
        values = self._values
        return f"{values['host']}:{values['port']}"

    def get(self, name: str) -> str | None:
        return self._values.get(name)


config = Config()
