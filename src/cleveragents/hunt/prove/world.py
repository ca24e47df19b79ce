"""The same world for every run: time, chance and names come out alike, whoever asks first.

What a call draws depends on its own thread alone. If threads shared one source, two correct calls
that overlap could hold each other's numbers, which no order of whole calls gives.
"""

from __future__ import annotations

import functools
import gc
import itertools
import os
import queue
import random
import sys
import threading
import uuid
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from frontrun._cooperative import (
    CooperativeLock,
    CooperativeQueue,
    CooperativeRLock,
    CooperativeSemaphore,
    get_context,
    patch_locks,
    patch_sleep,
    unpatch_locks,
    unpatch_sleep,
)
from frontrun._virtual_clock import patch_time, unpatch_time

from cleveragents.hunt.prove.turns import Abandoned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Id", "IdCount", "World", "the_world"]

#: The stream of whoever prepares the object, apart from those of the calls.
_PREPARING = -1
#: Garbage is collected between runs, now and then, as it is not while one is under way.
_RUNS_PER_COLLECTION = 300


class Id(int):
    """A number that only tells things apart; two runs are alike if they differ in these alone."""

    __slots__ = ()


class IdCount:
    """`itertools.count`, whose numbers are names; one step is one moment, as in the original."""

    def __init__(self, start: Any = 0, step: Any = 1) -> None:
        self._inner = _COUNT(start, step)

    def __iter__(self) -> IdCount:
        return self

    def __next__(self) -> Any:
        number = next(self._inner)
        return Id(number) if type(number) is int else number

    def __repr__(self) -> str:
        return repr(self._inner)


_COUNT = itertools.count
_URANDOM = os.urandom
_DRAWS = tuple(
    name
    for name in random.__all__
    if name[0].islower() and name not in {"seed", "getstate", "setstate"}
)


class World:
    """What is put in place of the true world while it is entered; runs are begun by one thread."""

    def __init__(self) -> None:
        self._streams: dict[int, random.Random] = {}
        self._preparing: int | None = None
        self._runs = 0
        #: Set once a call, or the building of the object, starts a thread of its own.
        self.own_thread = False

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Begin a run: fresh streams, and the calling thread counts as part of it."""
        self._runs += 1
        if self._runs % _RUNS_PER_COLLECTION == 0:
            gc.collect()
        self._streams = {}
        self.own_thread = False
        self._preparing = threading.get_ident()
        try:
            yield
        finally:
            self._preparing = None

    @contextmanager
    def entered(self) -> Iterator[World]:
        """Put the patches in place, and take them away afterwards."""
        with ExitStack() as undo:
            for patch, unpatch in (
                (patch_locks, unpatch_locks),
                (patch_sleep, unpatch_sleep),
                (patch_time, unpatch_time),
            ):
                patch()
                undo.callback(unpatch)
            for owner, name, put in self._patches():
                undo.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, put)
            if gc.isenabled():
                # A collection in the middle of a run calls finalisers at a moment of its own.
                gc.disable()
                undo.callback(gc.enable)
            undo.callback(setattr, sys, "dont_write_bytecode", sys.dont_write_bytecode)
            sys.dont_write_bytecode = True
            yield self

    def _patches(self) -> Iterator[tuple[Any, str, Any]]:
        yield os, "urandom", self._urandom
        yield random, "_urandom", self._urandom
        yield uuid, "uuid1", self._uuid
        yield itertools, "count", IdCount
        yield queue, "SimpleQueue", CooperativeQueue
        # It keeps the lock class by name since before any patch; `cached_property` takes it.
        yield functools, "RLock", CooperativeRLock
        yield threading.Thread, "start", self._start_refused()
        for name in _DRAWS:
            yield random, name, self._draw(name)
        for lock in (CooperativeLock, CooperativeRLock, CooperativeSemaphore):
            yield lock, "acquire", _telling(lock.acquire)
        yield CooperativeLock, "locked", _telling_locked(CooperativeLock.locked)

    def _stream(self) -> random.Random | None:
        """Return the stream of the asking thread; None for a stranger to the run."""
        context = get_context()
        if context is not None:
            asking = context[1]
        elif self._preparing == threading.get_ident():
            asking = _PREPARING
        else:
            return None
        if asking not in self._streams:
            self._streams[asking] = random.Random(f"hunt {asking}")  # noqa: S311  # no secret
        return self._streams[asking]

    def _draw(self, name: str) -> Callable[..., Any]:
        true = getattr(random, name)

        def draw(*args: Any, **kwargs: Any) -> Any:
            stream = self._stream()
            return (true if stream is None else getattr(stream, name))(*args, **kwargs)

        return draw

    def _urandom(self, size: int, /) -> bytes:
        stream = self._stream()
        return _URANDOM(size) if stream is None else stream.randbytes(size)

    def _uuid(self, *_: object) -> uuid.UUID:
        return uuid.UUID(bytes=self._urandom(16), version=4)

    def _start_refused(self) -> Callable[[threading.Thread], None]:
        start_it = threading.Thread.start

        def start(thread: threading.Thread) -> None:
            if self._stream() is None:
                return start_it(thread)
            self.own_thread = True
            msg = "a thread of its own"
            raise Abandoned(msg)

        return start


def _telling(acquire: Callable[..., bool]) -> Callable[..., bool]:
    """Note that a try for a lock came to nothing: a program then goes another way by design."""

    def telling(self: Any, *args: Any, **kwargs: Any) -> bool:
        got = acquire(self, *args, **kwargs)
        if not got:
            _note_refusal()
        return got

    return telling


def _telling_locked(locked: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def telling(self: Any) -> bool:
        held = locked(self)
        if held:
            _note_refusal()
        return held

    return telling


def _note_refusal() -> None:
    context = get_context()
    if context is not None:
        context[0].refused = True


the_world = World()
