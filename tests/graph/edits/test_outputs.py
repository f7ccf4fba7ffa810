"""exchange_output: one output of a graph, whatever the number of the others."""

import pytest

from tiered import ModelError
from tiered.graph import Graph, Model
from tiered.graph.core.edit import Edit
from tiered.graph.core.journal import dirty_nodes
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


def test_an_input_of_another_dtype_is_no_output_in_its_place() -> None:
    text = "(float[2] x, int64 n) => (float[2] y) { y = Relu(x) }"
    graph = Model.from_proto(parse(text)).main
    declared = graph.outputs[0].declared
    assert declared is not None
    mark = graph.model.mark()
    both = r"declares 'n' as the input int64\[\] and as the output float\[2\]"
    with pytest.raises(ModelError, match=both):
        graph.exchange_output(graph.values["y"], graph.values["n"])
    with pytest.raises(ModelError, match="declares 'n' as the input"):
        graph.set_graph_outputs([graph.values["n"]], [declared])
    assert graph.model.mark() == mark
    graph.exchange_output(graph.values["y"], graph.values["x"])
    assert graph.outputs == (graph.values["x"],)


def test_a_constant_that_a_body_returns_is_declared_by_its_contents() -> None:
    text = """(bool c) => (float[2] y) <float[2] k = {1, 2}> {
        y = If (c) <then_branch = a () => (float[2] t) { t = Identity(k) },
                    else_branch = b () => (float[2] e) { e = Neg(k) }> }"""
    model = Model.from_proto(parse(text))
    k = model.main.values["k"]
    model.main.set_type(k, None)
    body = model.main.nodes[0].bodies[0]
    body.add_output(k)
    made = model.to_proto().graph.node[0].attribute[0].g.output[1]
    assert made.name == "k"
    assert [dim.dim_value for dim in made.type.tensor_type.shape.dim] == [2]
