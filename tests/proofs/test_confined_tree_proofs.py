"""Closing a tree and using it: no call meets a descriptor that is closed or another's."""

from __future__ import annotations

import os

import pytest

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree
from proofs.racekit import prove, refute, without_lock


class TruthTwin(ConfinedTree):
    """Racy: closes if there is still something to close."""

    def close(self):
        if self._root:
            os.close(self._root)
            self._root = None


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "file").write_bytes(b"data")
    return tmp_path


def close(tree):
    tree.close()


def read(tree):
    return tree.read("file")


def listed(tree):
    return [entry.name for entry in tree.list()]


def fine(arena):
    """Every call gave the right answer, or was refused because the tree was closed."""
    closed = all(
        isinstance(error, SandboxError) and error.code == "CA5004"
        for error in arena.raised.values()
    )
    right = all(answer in (None, b"data", ["file"]) for answer in arena.returned.values())
    arena.subject.close()
    return closed and right


@pytest.mark.parametrize("use", [read, listed, close])
def test_close_meets_no_call_half_way(folder, use):
    prove(lambda: ConfinedTree(folder), [close, use], fine, raises=True)


def test_two_calls_do_not_meet(folder):
    prove(lambda: ConfinedTree(folder), [read, listed], fine, raises=True)


@pytest.mark.parametrize("use", [read, close])
def test_without_its_lock_a_call_meets_a_closed_descriptor(folder, use):
    refute(lambda: without_lock(ConfinedTree(folder), "_lock"), [close, use], fine, raises=True)


def test_a_twin_that_asks_before_it_closes_is_caught(folder):
    refute(lambda: TruthTwin(folder), [close, close], fine, raises=True)
