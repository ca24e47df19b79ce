from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan_graph import Graph, NodeState, expand, joined, state_of

DIAMOND = Graph({"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": [], "alone": []})


@st.composite
def graphs(draw, *, loops=False):
    """Nodes in a declared order that has nothing to do with their needs."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 8)))]
    needs = {}
    for place, name in enumerate(names):
        others = names if loops else names[:place]
        needs[name] = draw(st.lists(st.sampled_from(others), max_size=3)) if others else []
    return Graph({name: needs[name] for name in draw(st.permutations(names))})


def closure(name, steps):
    """The slow and plain meaning of downstream and upstream."""
    found = set(steps[name])
    while True:
        more = found | {far for near in found for far in steps[near]}
        if more == found:
            return found
        found = more


def test_order_keeps_the_declared_order_among_free_nodes():
    assert DIAMOND.order() == ("a", "b", "c", "d", "alone")


@given(graphs())
def test_order_is_topological_and_complete(graph):
    order = graph.order()
    assert sorted(order) == sorted(graph.needs)
    for name, needs in graph.needs.items():
        assert all(order.index(need) < order.index(name) for need in needs)


@given(graphs())
def test_order_takes_the_first_declared_of_the_free_nodes(graph):
    declared = list(graph.needs)
    done = set()
    for name in graph.order():
        free = [one for one in declared if one not in done and set(graph.needs[one]) <= done]
        assert name == free[0]
        done.add(name)


@given(graphs(loops=True))
def test_loop_is_found_exactly_when_there_is_no_order(graph):
    loop = graph.loop()
    reaches_itself = {one for one in graph.needs if one in closure(one, graph.needs)}
    assert (loop is None) is (not reaches_itself)
    if loop is None:
        assert len(graph.order()) == len(graph.needs)
        return
    assert loop[0] == loop[-1]
    assert len(set(loop)) == len(loop) - 1
    assert all(need in graph.needs[name] for name, need in pairwise(loop))
    with pytest.raises(RequestError, match="has no order"):
        graph.order()


def test_node_that_needs_itself_is_a_loop():
    assert Graph({"a": ["a"]}).loop() == ("a", "a")


def test_need_that_is_not_in_the_graph_is_refused():
    with pytest.raises(RequestError, match="`a` needs `b`, which is not in the graph"):
        Graph({"a": ["b"]})


@given(graphs(loops=True))
def test_downstream_and_upstream_are_all_that_can_be_reached(graph):
    for name in graph.needs:
        assert set(graph.downstream(name)) == closure(name, graph.dependants)
        assert set(graph.upstream(name)) == closure(name, graph.needs)


def test_answers_stand_in_declared_order():
    assert DIAMOND.downstream("a") == ("d", "b", "c")
    assert DIAMOND.upstream("d") == ("b", "c", "a")
    assert DIAMOND.ready({}) == ("a", "alone")


def test_skipped_node_lets_its_dependants_start():
    assert DIAMOND.ready({"a": NodeState.SKIPPED}) == ("b", "c", "alone")
    assert DIAMOND.released_by("a", {"a": NodeState.DONE}) == ("b", "c")
    assert DIAMOND.released_by("b", {"a": NodeState.DONE, "b": NodeState.DONE}) == ()


@pytest.mark.parametrize("end", [NodeState.FAILED, NodeState.CANCELLED])
def test_all_behind_a_failure_is_blocked(end):
    states = {"a": NodeState.DONE, "b": end, "c": NodeState.RUNNING}
    assert DIAMOND.blocked(states) == ("d",)
    assert DIAMOND.blocked({"a": end, "b": NodeState.DONE}) == ("d", "c")


@given(graphs(), st.data())
def test_whatever_ends_how_every_node_is_run_or_blocked(graph, data):
    """A run in any order comes to an end in which nothing waits that could have started."""
    states = {}
    while ready := graph.ready(states):
        name = data.draw(st.sampled_from(ready))
        ends = [NodeState.DONE, NodeState.SKIPPED, NodeState.FAILED, NodeState.CANCELLED]
        states[name] = data.draw(st.sampled_from(ends))
        released = graph.released_by(name, states)
        assert set(released) == set(graph.ready(states)) & set(graph.dependants[name])
        assert set(graph.ready(states)) == (set(ready) | set(released)) - {name}
    assert set(graph.blocked(states)) == set(graph.needs) - set(states)


def test_long_chain_needs_no_deep_stack():
    names = [f"n{number}" for number in range(10_000)]
    chain = {name: names[place - 1 : place] for place, name in enumerate(names)}
    assert Graph(chain).order() == tuple(names)
    assert len(Graph(chain).downstream("n0")) == 9_999
    assert len(Graph({**chain, "n0": ["n9999"]}).loop()) == 10_001


def test_fan_out_has_stable_ids_in_declared_order():
    listed = expand("lint", ["a", "b"])
    assert [(one.id, one.key, one.item) for one in listed] == [
        ("lint[0]", 0, "a"),
        ("lint[1]", 1, "b"),
    ]
    mapped = expand("lint", {"api": 1, "x]y": 2})
    assert [one.id for one in mapped] == ["lint[api]", "lint[x]y]"]
    assert expand("lint", None) == expand("lint", []) == ()
    assert {one.node for one in (*listed, *mapped)} == {"lint"}


def test_fan_out_over_anything_else_is_refused():
    with pytest.raises(RequestError, match="needs a list or a mapping, got str") as caught:
        expand("lint", "text")
    assert "outputs: json" in caught.value.hint
    with pytest.raises(RequestError, match="at most 1 items, got 2"):
        expand("lint", [1, 2], items_max=1)


@given(st.lists(st.sampled_from(NodeState), max_size=4))
def test_fan_out_is_done_when_all_have_ended_well(told):
    instances = expand("n", list(range(len(told))))
    state = state_of(instances, {one.id: state for one, state in zip(instances, told, strict=True)})
    if NodeState.FAILED in told:
        assert state is NodeState.FAILED
    elif NodeState.CONFLICTED in told:
        assert state is NodeState.CONFLICTED
    elif NodeState.CANCELLED in told:
        assert state is NodeState.CANCELLED
    elif told and set(told) == {NodeState.SKIPPED}:
        assert state is NodeState.SKIPPED
    elif set(told) <= {NodeState.DONE, NodeState.SKIPPED}:
        assert state is NodeState.DONE
    elif set(told) == {NodeState.WAITING}:
        assert state is NodeState.WAITING
    else:
        assert state is NodeState.RUNNING


def test_dependant_sees_all_outputs_in_declared_order():
    listed = expand("n", ["x", "y", "z"])
    assert joined(listed, {"n[2]": 3, "n[0]": 1}) == [1, None, 3]
    mapped = expand("n", {"b": 0, "a": 0})
    assert list(joined(mapped, {"n[a]": 1, "n[b]": 2}).items()) == [("b", 2), ("a", 1)]
    assert joined((), {}) == []


def test_graph_is_a_value():
    assert pickle.loads(pickle.dumps(DIAMOND)) == DIAMOND
