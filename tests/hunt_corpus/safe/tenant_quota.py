"""The table has a lock, and every tenant has one for what it has used; never one inside the other."""

from __future__ import annotations

import threading


class Tenant:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.lock = threading.Lock()

    def consume(self, units: int) -> bool:
        with self.lock:
            if self.used + units > self.limit:
                return False
            self.used += units
            return True


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
        return self._tenant(name).consume(units)

    def used(self, name: str) -> int:
        tenant = self._tenant(name)
        with tenant.lock:
            return tenant.used
