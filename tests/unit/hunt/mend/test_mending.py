"""What a fix looks like, and when none is offered."""

from __future__ import annotations

from textwrap import dedent

import pytest

from cleveragents.hunt.candidate import Candidate
from cleveragents.hunt.mend.anatomy import CannotMend
from cleveragents.hunt.mend.mending import mended


def candidate(owner, *state, lock=None):
    return Candidate(
        module="shop",
        path="shop.py",
        import_root=".",
        owner=owner,
        state=state,
        patterns=(),
        calls=(),
        accesses=(),
        evidence=(),
        line=1,
        lock=lock,
    )


def mend(source, owner, *state, lock=None):
    return mended(dedent(source).lstrip(), candidate(owner, *state, lock=lock))


def test_a_lock_stands_beside_the_state_and_around_the_calls_that_touch_it():
    assert (
        mend(
            '''
        """Stock."""

        class Stock:
            """Counts."""

            def __init__(self, limit):
                self.limit = limit
                # how many
                self._count = 0

            def add(self):
                """Add one."""
                # never above the limit
                if self._count < self.limit:
                    self._count += 1

            def name(self):
                return "stock"
        ''',
            "Stock",
            "_count",
        )
        == dedent(
            '''
        """Stock."""
        import threading

        class Stock:
            """Counts."""

            def __init__(self, limit):
                self.limit = limit
                self._lock = threading.Lock()  # guards: _count
                # how many
                self._count = 0

            def add(self):
                """Add one."""
                with self._lock:
                    # never above the limit
                    if self._count < self.limit:
                        self._count += 1

            def name(self):
                return "stock"
        '''
        ).lstrip()
    )


def test_what_runs_under_the_lock_never_takes_it_again():
    text = mend(
        """
        class Stock:
            def __init__(self):
                self._n = 0

            @property
            def count(self):
                return self._n

            def add(self, by, *more, at=1, **rest):
                self._n += by
                return self.count

            def twice(self, by):
                self._step(by)

            def _step(self, by):
                self.add(by, by, at=2)
        """,
        "Stock",
        "_n",
    )
    assert "return self._add_locked(by, *more, at=at, **rest)" in text
    assert "return self._count_locked()" in text
    assert "self._add_locked(by, by, at=2)" in text
    # Twins and helpers expect the lock; only the three doors take it.
    assert text.count("with self._lock:") == 3


def test_the_lock_of_the_class_is_used_and_taken_once():
    text = mend(
        """
        import threading

        class Stock:
            def __init__(self):
                self._guard = threading.Lock()
                self._made = None

            def get(self):
                if self._made is None:
                    with self._guard:
                        self._made = object()
                return self._made

            def drop(self):
                with self._guard:
                    self._made = None
        """,
        "Stock",
        "_made",
        lock="_guard",
    )
    assert text.count("threading.Lock()") == 1
    assert text.count("with self._guard:") == 2
    assert "with self._guard:\n            if self._made is None:\n" in text


def test_a_lock_that_every_call_made_anew_is_left_out():
    text = mend(
        """
        import threading

        class Stock:
            def __init__(self):
                self._n = 0

            def add(self):
                lock = threading.Lock()
                with lock:
                    self._n += 1

            def less(self):
                with threading.Lock():
                    self._n -= 1
        """,
        "Stock",
        "_n",
    )
    assert text.count("threading.Lock()") == 1
    assert "with self._lock:\n            self._n += 1" in text
    assert "with self._lock:\n            self._n -= 1" in text


def test_a_stranger_is_called_without_the_lock():
    text = mend(
        """
        import threading

        class Bus:
            def __init__(self, make):
                self._lock = threading.Lock()
                self._subscribers = []
                self._made = None
                self._make = make

            def publish(self, event):
                for call in self._subscribers:
                    call(event)

            def made(self):
                if self._made is None:
                    self._made = self._make()
                return self._made
        """,
        "Bus",
        "_subscribers",
        "_made",
        lock="_lock",
    )
    assert (
        "        with self._lock:\n"
        "            items = list(self._subscribers)\n"
        "        for call in items:\n"
        "            call(event)\n"
    ) in text
    assert (
        "        if missing:\n"
        "            value = self._make()\n"
        "            with self._lock:\n"
        "                if self._made is None:\n"
        "                    self._made = value\n"
    ) in text


def test_state_of_a_module_gets_a_lock_of_the_module():
    text = mend(
        """
        import os

        seen = {}

        def see(key):
            seen[key] = seen.get(key, 0) + 1

        def see_all(*keys):
            for key in keys:
                see(key)
        """,
        None,
        "seen",
    )
    assert "_lock = threading.Lock()  # guards: seen\nseen = {}" in text
    assert "with _lock:\n        for key in keys:\n            _see_locked(key)" in text


def test_state_that_all_objects_share_gets_a_lock_that_they_share():
    text = mend(
        """
        class Registry:
            known = {}

            @classmethod
            def add(cls, name):
                cls.known[name] = cls.known.get(name, 0) + 1
        """,
        "Registry",
        "known",
    )
    assert "class Registry:\n    _lock = threading.Lock()  # guards: known\n    known = {}" in text
    assert "with cls._lock:" in text


@pytest.mark.parametrize(
    ("source", "made"),
    [
        pytest.param(
            """
            from dataclasses import dataclass

            @dataclass
            class Stock:
                n: int = 0

                def add(self):
                    self.n += 1
            """,
            "_lock: threading.Lock = dataclasses.field(",
            id="a dataclass",
        ),
        pytest.param(
            """
            class Stock:
                __slots__ = ("n",)

                def __init__(self):
                    self.n = 0

                def add(self):
                    self.n += 1
            """,
            '__slots__ = ("n", "_lock")',
            id="slots",
        ),
        pytest.param(
            """
            class Stock(Shelf):
                def add(self):
                    self.n += 1
            """,
            "super().__init__(*args, **kwargs)\n        self._lock = threading.Lock()",
            id="nothing of its own is made",
        ),
        pytest.param(
            """
            class Stock:
                def add(self):
                    self.n += 1
            """,
            "def __init__(self) -> None:\n        self._lock = threading.Lock()",
            id="nothing at all is made",
        ),
        pytest.param(
            """
            class Stock:
                _lock = "taken"

                def __init__(self):
                    self.n = 0

                def add(self):
                    self.n += 1
            """,
            "self._n_lock = threading.Lock()",
            id="the name is taken",
        ),
        pytest.param(
            """
            class Stock:
                def __init__(self):
                    super().__init__()
                    self.reset()
                    self.n = 0

                def reset(self):
                    self.n = 0
            """,
            "super().__init__()\n        self._lock = threading.Lock()",
            id="its making calls what takes the lock",
        ),
    ],
)
def test_the_lock_is_made_where_the_object_is(source, made):
    assert made in mend(source, "Stock", "n")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("class Stock:\n  def add(self:\n", "cannot be parsed"),
        ("def make():\n  class Stock:\n    pass\n", "not at the top"),
        ("class Stock:\n  def other(self):\n    pass\n", "nothing that can be called"),
        ("class Stock:\n  async def add(self):\n    self.n = await self.m()\n", "coroutine"),
        ("class Stock:\n  def each(self):\n    for x in self.n:\n      yield x\n", "generator"),
        (
            "class Stock:\n  def add(self, call):\n    self.n = call(self.n)\n    return self.n\n",
            "in the middle",
        ),
        (
            (
                "class Stock:\n"
                "  def add(self, call):\n    self._do(call)\n"
                "  def _do(self, call):\n    self.n = call()\n"
            ),
            "which it was given",
        ),
        (
            (
                "class Stock:\n"
                "  @property\n  def n(self):\n    return self._n\n"
                "  @n.setter\n  def n(self, to):\n    self._n = to\n"
                "  def reset(self):\n    self.n = 0\n    self._n = 1\n"
            ),
            "is set under the lock",
        ),
    ],
)
def test_no_fix_is_offered_where_none_is_known(source, why):
    with pytest.raises(CannotMend, match=why):
        mend(source, "Stock", "n", "_n")


def test_what_is_guarded_as_a_whole_is_left_as_it_is():
    source = """
    import threading

    class Stock:
        def __init__(self):
            self._lock = threading.Lock()
            self._n = 0

        def add(self):
            with self._lock:
                self._n += 1
    """
    with pytest.raises(CannotMend, match="already"):
        mend(source, "Stock", "_n", lock="_lock")


def test_the_lock_is_not_held_while_something_else_is_waited_for():
    text = mend(
        """
        import threading

        class Stock:
            def __init__(self, ready):
                self._ready = threading.Event()
                self._items = []

            def take(self):
                self._ready.wait()
                return self._items.pop() if self._items else None
        """,
        "Stock",
        "_items",
    )
    assert (
        "        self._ready.wait()\n"
        "        with self._lock:\n"
        "            return self._items.pop() if self._items else None\n"
    ) in text


def test_a_wait_for_the_condition_that_is_the_lock_stays_under_it():
    text = mend(
        """
        import threading

        class Stock:
            def __init__(self):
                self._changed = threading.Condition()
                self._items = []

            def take(self):
                with self._changed:
                    while not self._items:
                        self._changed.wait()
                return self._items.pop()
        """,
        "Stock",
        "_items",
        lock="_changed",
    )
    assert (
        "        with self._changed:\n"
        "            while not self._items:\n"
        "                self._changed.wait()\n"
        "            return self._items.pop()\n"
    ) in text
