"""Folders and files are swapped for links to the outside while others use them, over and over."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree
from cleveragents.testing import run_together

if TYPE_CHECKING:
    from pathlib import Path

SECRET = b"secret"
INSIDE = b"inside"
#: A process of its own, so that it swaps at any moment of ours; the system swaps in one step.
SWAP = """
import ctypes, os, sys, time
os.chdir(sys.argv[1])
here, exchange, swap, swaps = -100, 2, ctypes.CDLL(None).renameat2, 0
until = time.monotonic() + 1
while time.monotonic() < until or swaps < 5000:
    assert swap(here, b"door", here, b"link", exchange) == 0
    swaps += 1
"""

pytestmark = [
    pytest.mark.stress,
    pytest.mark.usefixtures("frequent_switches"),
    pytest.mark.skipif(sys.platform != "linux", reason="swaps by `renameat2`"),
]


class NaiveTree:
    """The racy twin: it resolves the path, looks where it leads, and then uses the path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, path):
        return self._checked(path).read_bytes()

    def write(self, path, data):
        self._checked(path).write_bytes(data)

    def version(self, path):
        return self.read(path)

    def remove(self, path):
        self._checked(path).unlink()

    def list(self, path):
        return tuple(os.scandir(self._checked(path)))

    def _checked(self, path):
        if not (self._folder / path).resolve().is_relative_to(self._folder):
            raise FileNotFoundError(path)
        return self._folder / path


class World:
    """A sandbox whose folder `door` is in turns real and a link to the outside."""

    def __init__(self, tmp_path: Path) -> None:
        self.box, self.outside = tmp_path / "box", tmp_path / "outside"
        (self.box / "door").mkdir(parents=True)
        (self.box / "door/file").write_bytes(INSIDE)
        self.outside.mkdir()
        (self.box / "link").symlink_to(self.outside)
        for name in ("file", "canary"):
            (self.outside / name).write_bytes(SECRET)
        self._over = threading.Event()
        self._leaks: list[object] = []

    def swap(self):
        try:
            subprocess.run([sys.executable, "-c", SWAP, self.box], check=True, timeout=30)
        finally:
            self._over.set()

    def use(self, act):
        count = 0
        while not self._over.is_set():
            try:
                found = act()
            except (SandboxError, OSError):
                continue
            count += 1
            if found is not None and _shows_outside(found):
                self._leaks.append(found)
        return count

    def is_harmed(self):
        names = sorted(one.name for one in self.outside.iterdir())
        return (
            self._leaks != []
            or names != ["canary", "file"]
            or {(self.outside / name).read_bytes() for name in names} != {SECRET}
        )


def _shows_outside(found):
    if isinstance(found, tuple):
        return any(entry.name == "canary" for entry in found)
    content = getattr(found, "content", None)
    return (content.data if content else found) == SECRET


def attack(world, tree):
    acts = [
        lambda: tree.read("door/file"),
        lambda: tree.version("door/file"),
        lambda: tree.write("door/file", INSIDE),
        lambda: tree.write("door/new", INSIDE),
        lambda: tree.remove("door/canary"),
        lambda: tree.list("door"),
    ]
    jobs = [lambda act=act: world.use(act) for act in acts]
    return run_together([world.swap, *jobs])[1:]


def test_no_byte_outside_is_read_or_written_while_folders_are_swapped_for_links(tmp_path):
    world = World(tmp_path)
    with ConfinedTree(world.box) as tree:
        counts = attack(world, tree)

    assert not world.is_harmed()
    assert counts[4] == 0, "there is no canary inside to remove"
    assert min(counts[:4] + counts[5:]) > 0, f"each verb must have worked at times: {counts}"


def test_a_tree_that_looks_before_it_opens_is_caught(tmp_path):
    world = World(tmp_path)
    attack(world, NaiveTree(world.box))

    assert world.is_harmed()


def test_close_never_gives_a_descriptor_of_others_to_calls_under_way(tmp_path):
    """Numbers of descriptors are given anew: a call must not end up in another's folder."""
    (tmp_path / "box").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "box/file").write_bytes(INSIDE)
    (tmp_path / "other/file").write_bytes(SECRET)

    for _ in range(40):
        tree = ConfinedTree(tmp_path / "box")

        def close(tree=tree):
            tree.close()
            taken = [os.open(tmp_path / "other", os.O_RDONLY) for _ in range(8)]
            for descriptor in taken:
                os.close(descriptor)

        def read(tree=tree):
            try:
                return {tree.read("file") for _ in range(5)}
            except SandboxError as error:
                return {error.code}

        found = run_together([read, close, read])[::2]
        assert set().union(*found) <= {INSIDE, "CA5004"}
