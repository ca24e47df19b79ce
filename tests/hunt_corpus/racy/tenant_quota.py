"""The lock guards the table of tenants, but not what a tenant has used."""

from __future__ import annotations

import threading


class Tenant:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class QuotaService:
    def __init__(self, limit: int = 1) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._tenants: dict[str, Tenant] = {}

    def _tenant(self, name: str) -> Tenant:
        with self._lock:
            if name not in self._tenants:
                self._tenants[name] = Tenant(self.limit)
            return self._tenants[name]

    def consume(self, name: str, units: int = 1) -> bool:
        tenant = self._tenant(name)
        if tenant.used + units > tenant.limit:
            return False
        tenant.used += units
        return True

    def used(self, name: str) -> int:
        return self._tenant(name).used
