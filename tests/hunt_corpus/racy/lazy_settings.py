"""Two first readers build two settings: what the one changes the other never sees."""

from __future__ import annotations


class Settings:
    def __init__(self) -> None:
        self.values: dict[str, str] = {"mode": "fast"}


class SettingsHolder:
    def __init__(self) -> None:
        self._settings: Settings | None = None

    @property
    def settings(self) -> Settings:
        if not self._settings:
            self._settings = Settings()
        return self._settings

    def set(self, name: str, value: str) -> None:
        self.settings.values[name] = value

    def get(self, name: str) -> str | None:
        return self.settings.values.get(name)


holder = SettingsHolder()
