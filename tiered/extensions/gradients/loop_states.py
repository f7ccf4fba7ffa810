"""The shapes of the states of a Loop or Scan, before and after an iteration."""

from __future__ import annotations

from tiered.graph import Model, Node, TensorType
from tiered.graph.core.types import Shape
from tiered.graph.io.export import export_model


def shapes_of_states(node: Node, first: int, count: int) -> list[tuple[Shape | None, Shape | None]]:
    """Return the shapes of the states before an iteration, and after it, of a Loop or Scan.

    Before it, each has the shape of its initial value; if it has it afterwards too, no iteration
    changes it. What follows from this assumption holds nowhere else: it is inferred in a copy.
    """
    model = Model.from_proto(export_model(node.owner.model, is_bare=True))
    model.refresh_types()
    twin = _same_node(model, node)
    body = twin.bodies[0]
    before: list[Shape | None] = []
    states = body.inputs[first : first + count]
    for initial, value in zip(twin.inputs[first:], states, strict=False):
        shape = None if initial is None else initial.shape
        if shape is not None and initial is not None and initial.dtype is not None:
            shape = tuple(model.dims.invent() if dim is None else dim for dim in shape)
            body.set_type(value, TensorType(initial.dtype, shape))
        before.append(shape)
    model.refresh_types()
    results = body.outputs[1:] if node.op_type == "Loop" else body.outputs
    return [(shape, value.shape) for shape, value in zip(before, results, strict=False)]


def _same_node(model: Model, node: Node) -> Node:
    """Return the node of a copy of a model that is a node of the model."""
    graph, owner = model.main, node.owner.parent_node
    if owner is not None:
        bodies = {body.attribute: body for body in _same_node(model, owner).bodies}
        graph = bodies[node.owner.attribute]
    found = next(graph.values[value.name].producer for value in node.outputs if value is not None)
    assert found is not None
    return found
