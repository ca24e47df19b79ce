"""Proofs: the first reason to give a call up is the one that its caller hears."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cleveragents.domain.stop_signal import Stopped
from cleveragents.providers.model_access.desk import Ticket
from proofs.racekit import prove, refute, without_lock


def ticket():
    return Ticket(SimpleNamespace(timeout_s=1.0), None, "", tells=False)


def is_heard_as_it_stays(arena):
    """Every report names the reason that stays."""
    stays = arena.subject._stopped
    reports = arena.subject._reports
    return all(reports.get_nowait() is stays for _ in range(reports.qsize()))


GIVERS = [lambda one: one.give_up("closed"), lambda one: one.give_up("cancelled")]


def test_two_reasons_at_once_are_told_as_one():
    prove(ticket, GIVERS, is_heard_as_it_stays)


def test_without_its_lock_the_second_reason_replaces_the_first():
    refute(lambda: without_lock(ticket(), "_stopped_lock"), GIVERS, is_heard_as_it_stays)


def test_caller_hears_the_first_reason():
    one = ticket()
    one.give_up("closed")
    one.give_up("cancelled")
    with pytest.raises(Stopped, match="closed"):
        one.wait(None)
