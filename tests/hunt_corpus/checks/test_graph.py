from __future__ import annotations

from graph import Graph


def test_edges_have_two_ends():
    graph = Graph()
    graph.add_edge("a", "b")
    graph.add_edge("b", "a")
    graph.add_edge("b", "c")
    assert graph.edges() == 2
    assert graph.remove_node("b") == 2
    assert graph.edges() == 0
    assert graph.remove_node("b") == 0
