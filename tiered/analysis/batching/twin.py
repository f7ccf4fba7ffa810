"""A copy of a model with a named batch: sizes that follow from it, as polynomials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from tiered.analysis.batching.sample_facts import Sizes
from tiered.graph import Elements, Graph, Model, Node, TensorType, Value
from tiered.graph.edits.invalidate import forget_elements_of
from tiered.graph.io.protos import shapes_of_type


class Twin:
    """The copy; its types are stated node by node, as facts become known.

    Args:
        model: the model.
        places: the axis of the batch, by input.
        name: the dim of the batch.
    """

    def __init__(self, model: Model, places: Mapping[Value, int], name: str) -> None:
        self._copy = model.copy()
        self._graphs: dict[Graph, Graph] = dict(
            zip(model.graphs(), self._copy.graphs(), strict=True)
        )
        for graph in self._graphs.values():
            if not graph.root.is_function:
                _forget_declared_dims(graph)
        for value, axis in places.items():
            shape, dtype, own = value.shape, value.dtype, self._of(value)
            assert shape is not None
            assert dtype is not None
            dims = (*shape[:axis], name, *shape[axis + 1 :])
            self._copy.main.set_declared_type(own, TensorType(dtype, dims))

    def close(self) -> None:
        self._copy.close()

    def _of(self, value: Value) -> Value:
        return self._graphs[value.owner].values[value.name]

    def _node(self, node: Node) -> Node:
        output = next(value for value in node.outputs if value is not None)
        producer = self._of(output).producer
        assert producer is not None
        return producer

    def state(self, value: Value, sizes: Sizes) -> None:
        """State the shape of a value."""
        own, dims = self._of(value), self._copy.dims
        if value.dtype is not None:
            shape = tuple([dims.dim(size) for size in sizes])
            own.owner.set_type(own, TensorType(value.dtype, shape))

    def unsettle(self, node: Node) -> None:
        """Forget the elements of the outputs of a node: those of its operands were stated."""
        forget_elements_of(self._node(node))

    def elements(self, value: Value) -> Elements | None:
        """Return the known elements of a small integer tensor."""
        return value.elements if value.graph is None else self._of(value).elements

    def inferred(self, node: Node) -> Sequence[Sizes | None]:
        """Return the sizes of the outputs of a node that follow from its operands."""
        found: list[Sizes | None] = []
        for kind in self._copy.types.outputs_of(self._node(node)):
            shape = kind.shape if isinstance(kind, TensorType) else None
            size = self._copy.dims.size
            found.append(None if shape is None else tuple([size(dim) for dim in shape]))
        return found


def _forget_declared_dims(graph: Graph) -> None:
    """Remove the sizes that the file declares of all but the main inputs."""
    if not graph.is_main:
        graph.set_graph_inputs(graph.inputs, [_without_dims(info) for info in graph.input_infos])
    graph.set_graph_outputs(graph.outputs, [_without_dims(info) for info in graph.output_infos])
    graph.set_declarations([])


def _without_dims(info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    for shape in shapes_of_type(copy.type):
        for dim in shape.dim:
            dim.Clear()
    return copy
