"""Hunting for races in a repository, as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from textwrap import dedent

from behave import given, then, when

RACY = dedent(
    '''
    import threading


    class Stock:
        """A stock; threads may share it."""

        def __init__(self) -> None:
            self._items: dict[str, int] = {}

        def add(self, name: str) -> None:
            if name not in self._items:
                self._items[name] = 0
            self._items[name] += 1


    STOCK = Stock()
    '''
)
GUARDED = RACY.replace(
    "self._items: dict[str, int] = {}",
    "self._items: dict[str, int] = {}\n        self._lock = threading.Lock()",
).replace(
    """        if name not in self._items:
            self._items[name] = 0
        self._items[name] += 1
""",
    """        with self._lock:
            self._items[name] = self._items.get(name, 0) + 1
""",
)


@given("a repository with a stock that two visitors may add to at once")
def a_racy_stock(context):
    _repository(context, RACY)


@given("a repository with a stock that is guarded")
def a_guarded_stock(context):
    assert "with self._lock:" in GUARDED
    _repository(context, GUARDED)


@when("the code is hunted for races")
def hunted(context):
    context.found = _hunt(context)


@when("the code is hunted for races and mended")
def hunted_and_mended(context):
    context.found = _hunt(context, "--fix", "--no-check", "--yes")


@then("one race is told, with every line of how it happens")
def one_race(context):
    (bug,) = context.found["bugs"]
    assert bug["name"] == "shop:Stock._items"
    assert bug["reproduced"] == bug["replays"] > 0
    assert {step["thread"] for step in bug["steps"]} == {0, 1}


@then("the stock has a lock")
def has_a_lock(context):
    assert "with self._lock:" in (context.world.root / "shop.py").read_text()


@then("nothing more is found")
def nothing_more(context):
    assert _hunt(context)["bugs"] == []


@then("no race is told")
def no_race(context):
    assert context.found["bugs"] == []


def _repository(context, text):
    root = context.world.root
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "shop.py").write_text(text)


def _hunt(context, *words):
    root = context.world.root
    command = [sys.executable, "-m", "cleveragents", "hunt", "--json", "--seconds", "5", *words]
    environment = {**os.environ, "XDG_STATE_HOME": str(root / ".state")}
    ran = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode in {0, 1}, ran.stderr
    return json.loads(ran.stdout.splitlines()[0])
