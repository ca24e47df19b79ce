"""`restock` is the one method that forgot the lock: its update meets `reserve` and is lost."""

from __future__ import annotations

import threading


class OutOfStock(Exception):
    pass


class Inventory:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stock: dict[str, int] = {"apple": 5}

    def reserve(self, item: str = "apple", count: int = 1) -> int:
        with self._lock:
            have = self._stock.get(item, 0)
            if have < count:
                raise OutOfStock(item)
            self._stock[item] = have - count
            return have - count

    def restock(self, item: str = "apple", count: int = 1) -> None:
        self._stock[item] = self._stock.get(item, 0) + count

    def level(self, item: str = "apple") -> int:
        with self._lock:
            return self._stock.get(item, 0)
