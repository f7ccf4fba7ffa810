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
