"""Double-checked locking done right: the second look is under the lock, the build before the write."""

from __future__ import annotations

import threading


class Settings:
    def __init__(self) -> None:
        self.values: dict[str, str] = {"mode": "fast"}


class SettingsHolder:
    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._lock = threading.Lock()

    @property
    def settings(self) -> Settings:
        settings = self._settings
        if settings is None:
            with self._lock:
                settings = self._settings
                if settings is None:
                    settings = Settings()
                    self._settings = settings
        return settings

    def set(self, name: str, value: str) -> None:
        self.settings.values[name] = value

    def get(self, name: str) -> str | None:
        return self.settings.values.get(name)


holder = SettingsHolder()
