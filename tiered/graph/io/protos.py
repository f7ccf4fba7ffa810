"""Walks over the protos of a model without a view."""

from __future__ import annotations

from collections.abc import Iterator

import onnx


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield every node of a model, bodies and local functions included, training graphs excluded.

    The walk descends into a node only when the next one is requested, so that callers may edit it.
    """
    pending = [model.graph.node, *(function.node for function in model.functions)]
    while pending:
        for node in pending.pop():
            yield node
            for attribute in node.attribute:
                pending += [body.node for body in attribute.graphs]
                if attribute.HasField("g"):
                    pending.append(attribute.g.node)


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield every GraphProto of a model: the main one and all bodies, but no training graphs."""
    yield model.graph
    for node in nodes_of(model):
        for attribute in node.attribute:
            yield from attribute.graphs
            if attribute.HasField("g"):
                yield attribute.g


def shapes_of_type(proto: onnx.TypeProto) -> Iterator[onnx.TensorShapeProto]:
    """Yield the shapes in a type: of a tensor, or of the elements of a sequence or optional."""
    kind = proto.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        yield from shapes_of_type(getattr(proto, kind).elem_type)
    elif kind == "map_type":
        yield from shapes_of_type(proto.map_type.value_type)
    elif kind in ("tensor_type", "sparse_tensor_type"):
        yield getattr(proto, kind).shape
