"""The lock is around the call of the remembering function and around the list."""

from __future__ import annotations

import threading
from functools import lru_cache


class Pool:
    def __init__(self, size: int) -> None:
        self.size = size
        self.members: list[str] = []


_pools_lock = threading.Lock()


@lru_cache(maxsize=None)
def _pool(size: int) -> Pool:
    return Pool(size)


def get_pool(size: int = 4) -> Pool:
    with _pools_lock:
        return _pool(size)


def join(name: str, size: int = 4) -> int:
    with _pools_lock:
        pool = _pool(size)
        pool.members.append(name)
        return len(pool.members)


def members(size: int = 4) -> tuple[str, ...]:
    with _pools_lock:
        return tuple(_pool(size).members)
