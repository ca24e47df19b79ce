"""Every pair of calls of the recorder: no row twice, none lost."""

from __future__ import annotations

from pathlib import Path

from cleveragents.hunt.inputs.recorder import Recorder
from proofs.racekit import prove, refute, without_lock


def recorder():
    return Recorder(Path("/"))


def both_noted(arena):
    return sorted(arena.subject.stop()["a:f"]) == ["1", "2"]


def noted_once(arena):
    return arena.subject.stop()["a:f"] == ["1"]


def test_two_threads_note_the_same_call_once():
    prove(recorder, [lambda one: one.note("a:f", "1")] * 2, noted_once)


def test_two_threads_note_both_of_their_calls():
    prove(
        recorder, [lambda one: one.note("a:f", "1"), lambda one: one.note("a:f", "2")], both_noted
    )


def test_what_is_read_is_whole():
    prove(
        recorder,
        [lambda one: one.note("a:f", "1"), lambda one: one.stop()],
        lambda arena: arena.returned[1] in ({}, {"a:f": ["1"]}),
    )


def test_without_its_lock_a_call_is_noted_twice():
    refute(
        lambda: without_lock(recorder(), "_lock"),
        [lambda one: one.note("a:f", "1")] * 2,
        noted_once,
    )
