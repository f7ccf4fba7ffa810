"""exchange_output: one output of a graph, whatever the number of the others."""

import pytest

from tiered import ModelError
from tiered.graph import Graph, Model
from tiered.graph.core.journal import Edit, dirty_nodes
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y, float[2] z, float[2] y) { y = Relu(x) z = Exp(x) u = Neg(x) }"


def main() -> Graph:
    return Model.from_proto(parse(TEXT)).main


def test_every_place_of_the_value_is_exchanged_and_the_undo_brings_it_back() -> None:
    graph = main()
    y, z, u = (graph.values[name] for name in "yzu")
    mark, declared = graph.model.mark(), graph.output_infos
    graph.exchange_output(y, u)
    assert graph.outputs == (u, z, u)
    assert graph.output_infos == declared
    assert not y.is_graph_output
    assert u.output_of == (graph, graph)
    assert y.declared is None
    assert u.declared is declared[0]
    graph.exchange_output(u, z)
    assert graph.outputs == (z, z, z)
    assert z.declared is declared[0]
    graph.model.undo_to(mark)
    assert graph.outputs == (y, z, y)
    assert [y.declared, z.declared, u.declared] == [*declared[:2], None]


def test_only_the_producers_of_both_values_are_touched() -> None:
    graph = main()
    mark = graph.model.mark()
    graph.exchange_output(graph.values["y"], graph.values["u"])
    edits = graph.model.journal.since(mark)
    assert [entry[0] for entry in edits] == [Edit.EXCHANGE_GRAPH_OUTPUT]
    assert {node.op_type for node in dirty_nodes(edits)} == {"Relu", "Neg"}


def test_what_is_no_output_cannot_be_exchanged() -> None:
    graph, other = main(), main()
    with pytest.raises(ModelError, match="'u' is not an output"):
        graph.exchange_output(graph.values["u"], graph.values["y"])
    with pytest.raises(ModelError, match="cannot be an output"):
        graph.exchange_output(graph.values["y"], other.values["u"])
