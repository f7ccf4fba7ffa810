"""Groups without a cycle between them: phases, connected parts, orders, and limits."""

import pytest

from tests.extensions.partition.graphs import labels, model
from tiered import Graph, Node
from tiered.extensions.partition import contraction
from tiered.extensions.partition.contraction import (
    _groups_of,
    grouped,
    has_cycle,
    order_of_groups,
    order_of_units,
)

CHAIN = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Sin(a)  c = Sin(b)  y = Neg(c) }"
PARALLEL = """g (float[2] x) => (float[2] p, float[2] q) {
    a = Neg(x)  b = Neg(x)  p = Neg(a)  q = Sin(b) }"""


def graph_of(text: str) -> Graph:
    return model(text).main


def of_operators(graph: Graph, **targets: str) -> dict[Node, str]:
    """Return the target of each node whose operator has one."""
    return {node: targets[node.op_type] for node in graph.nodes if node.op_type in targets}


def found(text: str, *, connected: bool = False, **targets: str) -> list[tuple[str, list[str]]]:
    graph = graph_of(text)
    groups = grouped(graph, of_operators(graph, **targets), connected=connected)
    return [(group.target, labels(group.nodes)) for group in groups]


def test_fixed_groups_stay_as_they_are() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Sin(a)  c = Sin(b)  y = Neg(c) }")
    a, b, c, y = of.main.nodes
    found = grouped(of.main, {a: "t", y: "t"}, fixed=[[b, c]])
    assert [labels(group.nodes) for group in found] == [["a"], ["y"]]


def test_a_path_that_leaves_begins_a_new_phase() -> None:
    assert found(CHAIN, Neg="t") == [("t", ["a"]), ("t", ["y"])]
    assert found(CHAIN, Neg="t", Sin="t") == [("t", ["a", "b", "c", "y"])]
    assert found(CHAIN, Sin="t") == [("t", ["b", "c"])]
    assert found(CHAIN) == []


def test_nodes_of_one_phase_are_together_unless_they_have_to_be_connected() -> None:
    assert found(PARALLEL, Neg="t") == [("t", ["a", "b", "p"])]
    assert found(PARALLEL, connected=True, Neg="t") == [("t", ["a", "p"]), ("t", ["b"])]


def test_a_later_target_takes_the_groups_of_an_earlier_one_as_they_are() -> None:
    text = """g (float[2] x) => (float[2] p, float[2] q) {
        a = Neg(x)  b = Sin(x)  p = Sin(a)  q = Neg(b) }"""
    # Neg is first: its two nodes are one group, which the nodes of Sin are before and after.
    assert found(text, Neg="t", Sin="u") == [("u", ["b"]), ("t", ["a", "q"]), ("u", ["p"])]


def test_adjacent_groups_of_different_phases_merge_if_no_path_is_between() -> None:
    # y is of the second phase by b, and adjacent to a, which is not before b.
    text = """g (float[2] x) => (float[2] y) {
        a = Neg(x)  d = Neg(x)  b = Sin(d)  y = Add(a, b) }"""
    assert found(text, connected=True, Neg="t", Add="t") == [("t", ["d"]), ("t", ["a", "y"])]
    own = """g (float[2] x) => (float[2] y) { a = Neg(x)  b = Sin(a)  y = Add(a, b) }"""
    assert found(own, connected=True, Neg="t", Add="t") == [("t", ["a"]), ("t", ["y"])]


@pytest.mark.parametrize("limit", ["_NEIGHBOURS", "_SEARCHED", "_WINDOW"])
def test_beyond_the_limits_groups_stay_apart(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """g (float[2] x) => (float[2] y) {
        d = Neg(x)  a = Neg(x)  b = Sin(d)  y = Add(a, b) }"""
    graph = graph_of(text)
    targets = of_operators(graph, Neg="t", Add="t")
    whole = [labels(group.nodes) for group in grouped(graph, targets, connected=True)]
    assert ["a", "y"] in whole
    monkeypatch.setattr(contraction, limit, 0)
    apart = [labels(group.nodes) for group in grouped(graph, targets, connected=True)]
    assert sorted(apart) == [["a"], ["d"], ["y"]]


def test_groups_with_a_path_that_returns_form_a_cycle() -> None:
    graph = graph_of(CHAIN)
    a, b, c, y = graph.nodes
    assert not has_cycle(graph, [[a, b], [c, y]])
    assert has_cycle(graph, [[a, y]])
    assert has_cycle(graph, [[a, c], [b, y]])
    assert not has_cycle(graph, [])


def test_the_order_of_groups_has_no_back_edges() -> None:
    graph = graph_of(CHAIN)
    a, b, c, y = graph.nodes
    assert order_of_groups(graph, [[c], [a], [y]]) == [1, 0, 2]
    assert order_of_groups(graph, [[a, c]]) is None
    assert order_of_groups(graph, []) == []
    assert b.label == "b"


def test_copied_nodes_impose_no_order() -> None:
    graph = graph_of(
        "g (float[2] x) => (float[2] y) { a = Neg(x)  k = Sin(a)  c = Add(a, k)  y = Add(c, k) }"
    )
    a, k, c, y = graph.nodes
    assert order_of_groups(graph, [[a, c], [y]]) is None
    assert order_of_groups(graph, [[a, c], [y]], {k}) == [0, 1]


def test_a_capture_counts_as_a_read() -> None:
    text = """g (float[2] x, bool c) => (float[2] y) { a = Neg(x)
        b = If <then_branch = t () => (float[2] p) { p = Sin(a) },
                else_branch = e () => (float[2] q) { q = Sin(x) }> (c)  y = Neg(b) }"""
    assert found(text, Neg="t") == [("t", ["a"]), ("t", ["y"])]


@pytest.mark.parametrize(
    ("unit_of", "reads", "expected"),
    [
        ([0, 1, 2], [[], [0], [1]], [0, 1, 2]),
        ([0, 1, 2], [[2], [], [1]], [1, 2, 0]),
        ([0, 1, 2], [[], [], []], [0, 1, 2]),
        ([0, 0, 2], [[], [0], [1]], [0, 2]),
        ([0, 1, 0], [[], [0], [1]], []),
        ([0, 1, 0, 3], [[], [0], [1], []], [3]),
    ],
)
def test_units_are_ordered_by_what_they_read(
    unit_of: list[int], reads: list[list[int]], expected: list[int]
) -> None:
    assert order_of_units(unit_of, reads) == expected


def test_groups_of_random_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The places that each node reads; "+" for nodes of the target; limits, 0 for the usual one."""
    names = ("_NEIGHBOURS", "_SEARCHED", "_WINDOW")
    usual = [getattr(contraction, name) for name in names]
    for reads, own, connected, limits, expected in (
        ("-0-01-2--0-3-3", "-+-++-++", True, (2, 0, 0), "1 367 4"),
        ("-0-01-1-3-123", "+-++++", True, (0, 0, 0), "0 2345"),
        ("-0-1-01--014-3", "+-+-+++", True, (0, 0, 0), "0 2 45 6"),
        ("--01-2-02-2", "--++-+", False, (0, 0, 1), "235"),
        ("-0-1-12-23-234", "+-++-+", True, (1, 2, 1), "0 23 5"),
        ("-0-0-01-1-034-0-0", "++++-+++", True, (3, 0, 3), "012367 5"),
        ("-0-1--123-1-3-5", "-+-+++++", True, (0, 0, 0), "157 346"),
        ("-0-1-1-02-234--12", "--+-++++", True, (2, 1, 0), "2457 6"),
        ("-0---23-0-25", "+-+-+-+", True, (0, 0, 0), "0 246"),
        ("--01-02-3--45-026-6-", "--+---++-+", True, (3, 2, 0), "2 67 9"),
        ("-0-1--1-04-235-1-3", "++-+-++++", True, (3, 2, 2), "017 3568"),
        ("-0-01-02---2-25--1", "+-++++++-+", True, (0, 1, 2), "0 2367 4 5 9"),
        ("-0-0-01--234-2-046", "+-+++++-", True, (2, 0, 2), "026 35 4"),
        ("-0--1-2-034-125-124-7", "+-+-++-+-", True, (0, 0, 0), "0 2457"),
        ("--0--2-014-13", "++--+++", True, (0, 0, 1), "0 1456"),
        ("--0-012-1-04-012-23-15", "++---++++", True, (0, 0, 0), "058 1 6 7"),
        ("---0-3-2-45-125-4-28", "-++++-++-+", True, (0, 0, 0), "17 29 34 6"),
    ):
        for name, limit, value in zip(names, limits, usual, strict=True):
            monkeypatch.setattr(contraction, name, limit or value)
        before = [[int(at) for at in part] for part in reads.split("-")]
        groups = _groups_of(list(range(len(own))), before, [mark == "+" for mark in own], connected)
        found = " ".join("".join(map(str, group)) for group in groups)
        assert found == expected, (reads, own, connected, limits)
