"""Orders, volume and best price change together."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True)
class Order:
    id: int
    price: int
    quantity: int = 1


class OrderBook:
    def __init__(self) -> None:
        self._orders: dict[int, Order] = {}
        self._best: int | None = None
        self.volume = 0
        self._lock = threading.Lock()

    def place(self, order: Order) -> bool:
        with self._lock:
            if order.id in self._orders:
                return False
            self._orders[order.id] = order
            self.volume += order.quantity
            if self._best is None or order.price > self._best:
                self._best = order.price
            return True

    def cancel(self, order_id: int) -> Order | None:
        with self._lock:
            order = self._orders.pop(order_id, None)
            if order is not None:
                self.volume -= order.quantity
                self._best = max((one.price for one in self._orders.values()), default=None)
            return order

    def best(self) -> int | None:
        with self._lock:
            return self._best
