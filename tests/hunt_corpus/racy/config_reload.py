"""A reload empties the dict before it fills it: readers find nothing in between."""

from __future__ import annotations


class Config:
    def __init__(self) -> None:
        self._values: dict[str, str] = {"host": "localhost", "port": "80"}

    def reload(self, host: str = "example.org", port: str = "443") -> None:
        self._values.clear()
        self._values["host"] = host
        self._values["port"] = port

    def address(self) -> str:
        host = self._values.get("host", "nowhere")
        return f"{host}:{self._values.get('port', 'none')}"

    def get(self, name: str) -> str | None:
        return self._values.get(name)


config = Config()
