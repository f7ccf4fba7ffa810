"""The nodes next to those of a rewrite, and the types of the values between them."""

from collections.abc import Callable

import pytest

from tests.small import made_by, model, named
from tiered.graph import Graph
from tiered.pipeline.instruments.tracing import surroundings as module
from tiered.pipeline.instruments.tracing.changes import Rewind
from tiered.pipeline.instruments.tracing.surroundings import Surroundings, surroundings_of

TEXT = """g (float[2] x) => (float[2] y, float[2] z, float[2] v) <float[2] w = {1,2}> {
    a = Neg(x)  b = Abs(a)  c = Add(b, w)  y = Relu(c)  z = Exp(c)  v = Sin(c) }"""


def around(edit: Callable[[Graph], object]) -> Surroundings:
    """Return what is next to the nodes that an edit touches."""
    made = model(TEXT)
    mark = made.mark()
    edit(made.main)
    return surroundings_of(Rewind(made.journal.entries[mark:]))


def removed(graph: Graph) -> None:
    """Replace the Add, and rename its result."""
    graph.rename_value(named(graph, "c"), "d")
    graph.replace(made_by(graph, "d"), (named(graph, "b"),))
    graph.prune(graph.nodes)


def test_the_neighbours_of_touched_nodes_and_the_values_between_them() -> None:
    changed = around(lambda graph: graph.set_input(made_by(graph, "c"), 0, named(graph, "a")))
    labels = ["node_b", "node_a", "node_y", "node_z", "node_v"]
    assert [state.label for state in changed.nodes] == labels
    assert {name: state.is_constant for name, state in changed.values.items()} == {
        "a": False, "b": False, "c": False, "w": True
    }  # fmt: skip
    assert {str(state.type) for state in changed.values.values()} == {"float[2]"}
    two = around(lambda graph: [graph.set_attribute(made_by(graph, name), "k", 1) for name in "bc"])
    assert [state.label for state in two.nodes] == ["node_y", "node_z", "node_v", "node_a"]
    gone = around(removed)
    assert [state.label for state in gone.nodes] == ["node_b"]
    assert sorted(gone.values) == ["b", "c", "d", "v", "w", "y", "z"]


def test_the_first_nodes_and_readers_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_READERS", 2)
    changed = around(lambda graph: graph.set_input(made_by(graph, "c"), 0, named(graph, "a")))
    assert [state.label for state in changed.nodes] == ["node_b", "node_a", "node_y", "node_z"]
    monkeypatch.setattr(module, "MOST_NODES", 0)
    assert around(removed) == Surroundings()
