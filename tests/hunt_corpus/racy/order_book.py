"""The best price is kept beside the orders: a new order and a cancelled one cross."""

from __future__ import annotations

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

    def place(self, order: Order) -> bool:
        if order.id in self._orders:
            return False
        self._orders[order.id] = order
        self.volume += order.quantity
        if self._best is None or order.price > self._best:
            self._best = order.price
        return True

    def cancel(self, order_id: int) -> Order | None:
        order = self._orders.pop(order_id, None)
        if order is not None:
            self.volume -= order.quantity
            self._best = max((one.price for one in self._orders.values()), default=None)
        return order

    def best(self) -> int | None:
        return self._best
