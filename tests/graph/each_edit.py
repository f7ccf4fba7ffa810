"""An edit of each kind, of the model of `tests.graph.editor`."""

from collections.abc import Callable

import numpy as np
import onnx

from tests.graph.editor import ONE, fresh
from tiered.graph import Graph, Model, Tensor, TensorType
from tiered.graph.core.edit import Edit
from tiered.graph.edits.content import exchange_content

SMALL = Tensor.of(np.zeros(3, np.float32))


def _exchange(graph: Graph) -> None:
    """Exchange both outputs of a node."""
    node = graph.values["dead"].producer
    assert node is not None
    graph.exchange_outputs(node, 0, node, 1)


EDITS: dict[Edit, Callable[[Model, Graph], object]] = {
    Edit.ADD_NODE: lambda m, g: g.add_node("Neg", (g.inputs[0],)),
    Edit.REMOVE_NODE: lambda m, g: g.remove_node(g.nodes_of("Split")[0]),
    Edit.SET_INPUT: lambda m, g: g.set_input(g.nodes[0], 1, g.values["k"]),
    Edit.SET_INPUTS: lambda m, g: g.set_inputs(g.nodes[0], g.nodes[0].inputs[::-1]),
    Edit.SET_OUTPUTS: lambda m, g: g.drop_outputs(g.nodes_of("Split")[0], [1]),
    Edit.SET_PROTO: lambda m, g: g.set_attribute(g.nodes[0], "k", 1),
    Edit.RENAME_NODE: lambda m, g: g.rename_node(g.nodes[0], "n"),
    Edit.ADD_CONSTANT: lambda m, g: g.constant(SMALL),
    Edit.REMOVE_CONSTANT: lambda m, g: g.remove_constant(g.values["unused"]),
    Edit.SET_CONSTANT: lambda m, g: g.set_constant(g.values["k"], SMALL),
    Edit.SET_TYPE: lambda m, g: g.set_type(g.values["a"], TensorType(1, None)),
    Edit.RENAME_VALUE: lambda m, g: g.rename_value(g.values["a"], "aa"),
    Edit.SET_GRAPH_INPUTS: lambda m, g: g.order_inputs(g.inputs[::-1]),
    Edit.SET_GRAPH_OUTPUTS: lambda m, g: g.order_outputs(g.outputs[::-1]),
    Edit.EXCHANGE_GRAPH_OUTPUT: lambda m, g: g.exchange_output(g.outputs[0], g.values["a"]),
    Edit.ADD_FUNCTION: lambda m, g: m.add(ONE),
    Edit.REMOVE_FUNCTION: lambda m, g: m.remove(m.functions[1]),
    Edit.SET_OPSET: lambda m, g: m.set_opset("new", 1),
    Edit.EXCHANGE_OUTPUTS: lambda m, g: _exchange(g),
    Edit.FOLD_TO_INITIALIZER: lambda m, g: g.fold_to_initializer(g.nodes[0], 0, SMALL),
    Edit.SET_ORDER: lambda m, g: g.order_nodes(g.topological_order()),
    Edit.SET_DECLARATIONS: lambda m, g: g.set_declarations([]),
    Edit.MOVE_NODE: lambda m, g: _move(g),
    Edit.MOVE_CONSTANT: lambda m, g: (
        g.body_nodes[0].bodies[0].move_constant(g.body_nodes[0].bodies[0].values["k2"], g)
    ),
    Edit.SET_IR_VERSION: lambda m, g: m.set_ir_version(11),
    Edit.SET_SKELETON: lambda m, g: m.set_metadata({"key": "text"}),
    Edit.SET_ANNOTATIONS: lambda m, g: _annotate(g),
    Edit.EXCHANGE_CONTENT: lambda m, g: exchange_content(m, fresh()),
    Edit.FORGET_TYPES: lambda m, g: m.forget_types(),
}
"""An edit of each kind; most log it alone."""


def _annotate(graph: Graph) -> None:
    """Let the annotation of a value go to its replacement."""
    a, new = graph.values["a"], graph.add_node("Abs", (graph.inputs[0],)).output
    graph.annotations.append(([a], onnx.TensorAnnotation(tensor_name="a")))
    graph.replace_uses(a, new)


def _move(graph: Graph) -> None:
    """Move a node out of a body."""
    body = graph.body_nodes[0].bodies[0]
    body.move_node(body.add_node("Neg", (graph.inputs[0],)), graph)
