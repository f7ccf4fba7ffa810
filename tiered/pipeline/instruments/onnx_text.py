"""Models and nodes as the text of `onnx.printer`, without the numbers of large weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import onnx
from onnx import printer

from tiered.graph.io.export import export_model, export_node

if TYPE_CHECKING:
    from tiered.graph import Model, Node

FEW = 16
"""Elements of a tensor that are still printed."""


def model_text(model: Model) -> str:
    """Return a model as text; a large initializer shows its type only."""
    proto = export_model(model, max_elements=FEW)
    # The export has omitted initializers as typed inputs; the interface does not have them.
    hidden = {
        value.name
        for graph in model.graphs()
        for value in graph.initializers
        if not value.is_graph_input
    }
    for graph in _graphs(proto.graph):
        infos = list(graph.input)
        del graph.input[:]
        for info in infos:
            (graph.value_info if info.name in hidden else graph.input).append(info)
        for node in graph.node:
            _shorten_attributes(node)
    for function in proto.functions:
        for node in function.node:
            _shorten_attributes(node)
    return str(printer.to_text(proto))


def node_text(node: Node) -> str:
    """Return a node, with its bodies, as text on one line."""
    return proto_text(export_node(node, max_elements=FEW))


def proto_text(proto: onnx.NodeProto) -> str:
    """Return a NodeProto as text on one line; it replaces large tensors by their type."""
    _shorten_attributes(proto)
    return " ".join(str(printer.to_text(proto)).split())


def _graphs(graph: onnx.GraphProto) -> list[onnx.GraphProto]:
    found = [graph]
    for current in found:
        for node in current.node:
            for attribute in node.attribute:
                found += attribute.graphs
                if attribute.HasField("g"):
                    found.append(attribute.g)
    return found


def _shorten_attributes(node: onnx.NodeProto) -> None:
    """Replace large tensors of attributes by a string with their type."""
    for attribute in node.attribute:
        if attribute.type != onnx.AttributeProto.TENSOR:
            continue
        tensor = attribute.t
        if math.prod(tensor.dims) > FEW:
            dtype = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
            attribute.ClearField("t")
            attribute.type = onnx.AttributeProto.STRING
            attribute.s = f"{dtype}[{','.join(map(str, tensor.dims))}] ...".encode()
