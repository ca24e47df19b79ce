"""`lru_cache` remembers, but it does not keep two first callers from making two pools."""

from __future__ import annotations

from functools import lru_cache


class Pool:
    def __init__(self, size: int) -> None:
        self.size = size
        self.members: list[str] = []


@lru_cache(maxsize=None)
def get_pool(size: int = 4) -> Pool:
    return Pool(size)


def join(name: str, size: int = 4) -> int:
    pool = get_pool(size)
    pool.members.append(name)
    return len(pool.members)


def members(size: int = 4) -> tuple[str, ...]:
    return tuple(get_pool(size).members)
