"""The networkx view: slots of edges follow single edits, and nobody else writes to it."""

import networkx as nx
import pytest

from tiered.graph.core.live_dag import Slot, add_slot, drop_slot, new_dag, slot_of, view_of
from tiered.support.errors import ModelError


def slots(dag: nx.DiGraph, tail: str = "a", head: str = "b") -> tuple[Slot, ...]:
    return tuple(dag.edges[tail, head]["slots"])


def test_slots_are_sorted_a_captured_one_first() -> None:
    dag = new_dag("ab", [("a", "b", [Slot(1, 0), Slot(0, 2), Slot(0, None), Slot(0, 1)])])
    assert slots(dag) == (Slot(0, None), Slot(0, 1), Slot(0, 2), Slot(1, 0))
    add_slot(dag, "a", "b", Slot(0, 0))
    assert slots(dag)[1] == Slot(0, 0)


def test_an_edge_comes_with_its_first_slot_and_goes_with_its_last() -> None:
    dag = new_dag("ab", [])
    add_slot(dag, "a", "b", Slot(0, 0))
    add_slot(dag, "a", "b", Slot(0, 1))
    drop_slot(dag, "a", "b", Slot(0, 0))
    assert slots(dag) == (Slot(0, 1),)
    drop_slot(dag, "a", "b", Slot(0, 1))
    assert list(dag.edges) == []
    assert list(dag.nodes) == ["a", "b"]


def test_equal_slots_are_shared() -> None:
    assert slot_of(0, None) is slot_of(0, None)


def test_a_view_follows_the_graph_and_cannot_be_edited() -> None:
    dag = new_dag("ab", [])
    view = view_of(dag)
    add_slot(dag, "a", "b", Slot(0, 0))
    assert slots(view) == (Slot(0, 0),)
    with pytest.raises(nx.NetworkXError):
        view.add_edge("b", "a")


@pytest.mark.parametrize(
    "write",
    [
        lambda dag: dag.edges["a", "b"].update(weight=1),
        lambda dag: dag.edges["a", "b"].update({"weight": 1}),
        lambda dag: dag.edges["a", "b"].__setitem__("slots", ()),
        lambda dag: dag.nodes["a"].setdefault("color", "red"),
        lambda dag: dag.graph.clear(),
    ],
)
def test_attributes_are_read_only_but_in_a_copy(write: object) -> None:
    dag = new_dag("ab", [("a", "b", [Slot(0, 0)])])
    assert callable(write)
    with pytest.raises(ModelError, match="read-only"):
        write(dag)
    copy = nx.DiGraph(dag)
    copy.edges["a", "b"]["weight"] = 1
    assert "weight" not in dag.edges["a", "b"]
