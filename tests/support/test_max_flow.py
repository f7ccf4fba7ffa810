"""Minimum cuts: as cheap as those of networkx, and the smallest of several."""

import networkx as nx
from hypothesis import given, strategies as st

from tiered.support.max_flow import SINK, SOURCE, Network

NODES = 7

edges = st.lists(
    st.tuples(
        st.integers(0, NODES - 1),
        st.integers(0, NODES - 1),
        st.sampled_from([1, 2, 3, 5, None]),
        st.sampled_from([0, 0, 1, 4]),
    ),
    max_size=25,
)


@given(edges=edges)
def test_a_cut_is_the_cheapest_and_the_smallest(
    edges: list[tuple[int, int, int | None, int]],
) -> None:
    network, reference = Network(), nx.DiGraph()
    reference.add_nodes_from(range(NODES))
    for _ in range(NODES - 2):
        network.add_node()
    for source, target, capacity, back in edges:
        # What is never cut leads away from the source, as in a placement: no cut costs infinity.
        if source == target or (capacity is None and (source == SOURCE or target == SINK)):
            continue
        if capacity is None:
            network.add_edge(source, target)
        else:
            network.add_edges([(source, target, capacity, back)])
            known = reference.get_edge_data(target, source, {"capacity": 0})["capacity"]
            reference.add_edge(target, source, capacity=known + back)
        weight = 1000 if capacity is None else capacity
        known = reference.get_edge_data(source, target, {"capacity": 0})["capacity"]
        reference.add_edge(source, target, capacity=known + weight)
    for node in range(2, NODES):
        for source, target in ((SOURCE, node), (node, SINK)):
            known = reference.get_edge_data(source, target, {"capacity": 0})["capacity"]
            reference.add_edge(source, target, capacity=known + 1)
            network.add_edge(source, target, 1)
    side = network.sink_side()
    cost = sum(
        data["capacity"]
        for source, target, data in reference.edges(data=True)
        if side[target] and not side[source]
    )
    expected, (_, smallest) = nx.minimum_cut(reference, SOURCE, SINK)
    assert (side[SOURCE], side[SINK]) == (False, True)
    assert cost == expected
    assert {node for node in range(NODES) if side[node]} == smallest
