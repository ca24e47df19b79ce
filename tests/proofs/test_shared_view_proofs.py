"""Every order of two strategies that ask for the view of their request."""

from __future__ import annotations

from pathlib import Path

from cleveragents.domain.context_request import ContextRequest
from cleveragents.strategies.shared_view import SharedView
from proofs.racekit import prove, refute, without_lock

REQUEST = ContextRequest("task", Path("tree"))
OTHER = ContextRequest("task", Path("tree"))


class NoIndex:
    """An index that is never asked: who makes the view is decided before."""

    def view(self, _request, _stop):
        raise AssertionError


def made() -> SharedView:
    return SharedView(NoIndex())


def ask(shared: SharedView):
    return shared._slot(REQUEST)


def ask_other(shared: SharedView):
    return shared._slot(OTHER)


def one_makes_it(arena) -> bool:
    (one, first), (two, second) = arena.returned[0], arena.returned[1]
    return one is two and first is not second


def both_are_kept(arena) -> bool:
    kept = {id(slot.request) for slot in arena.subject._slots}
    return kept == {id(REQUEST), id(OTHER)}


def test_one_of_two_strategies_makes_the_view_in_every_order():
    prove(made, [ask, ask], one_makes_it)


def test_views_of_two_requests_are_both_kept_in_every_order():
    prove(made, [ask, ask_other], both_are_kept)


def test_a_shared_view_without_its_lock_is_caught():
    refute(lambda: without_lock(made(), "_lock"), [ask, ask], one_makes_it)


def test_a_lost_request_without_the_lock_is_caught():
    refute(lambda: without_lock(made(), "_lock"), [ask, ask_other], both_are_kept)
