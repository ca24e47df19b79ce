from __future__ import annotations

from request_context import RequestContext


def test_trail_of_one_request():
    context = RequestContext()
    assert context.handle("ann") == "ann: begin ann, end ann"
    assert context.handle("bob") == "bob: begin bob, end bob"
