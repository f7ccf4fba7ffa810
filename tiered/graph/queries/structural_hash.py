"""Fingerprints: equal for models that compute alike in the same way, whatever things are called."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

_Numbers = dict["Value", str]


def fingerprint(model: ModelState) -> bytes:
    """Return a digest of what a model computes and how; names and the order of nodes do not count.

    Constants count by their place, dtype, shape and, where they are small, numbers.
    """
    digest = hashlib.sha256()
    digest.update(repr(sorted(model.opset_imports.items())).encode())
    for graph in (model.main, *sorted(model.functions, key=lambda function: function.id)):
        digest.update(_of_graph(graph, {}))
    return digest.digest()


def _of_graph(graph: Graph, numbers: _Numbers) -> bytes:
    """Return the digest of a graph: each value is known by what computes it."""
    numbers = dict(numbers)
    for at, value in enumerate(graph.inputs):
        numbers[value] = f"input {graph.depth} {at}"
    lines: list[str] = []
    for node in graph.topological_order():
        text = _of_node(node, numbers)
        for at, output in enumerate(node.outputs):
            if output is not None:
                numbers[output] = f"{text}.{at}"
        lines.append(text)
    outputs = [_of_value(value, numbers) for value in graph.outputs]
    return hashlib.sha256("\n".join([*sorted(lines), *outputs]).encode()).digest()


def _of_node(node: Node, numbers: _Numbers) -> str:
    reads = [_of_value(value, numbers) for value in node.inputs]
    settings = sorted(
        (attribute.SerializeToString(deterministic=True))
        for name, attribute in node.attribute_protos().items()
        if not any(body.attribute == name for body in node.bodies)
    )
    bodies = [_of_graph(body, numbers) for body in node.bodies]
    said = repr((node.domain, node.op_type, reads, settings, bodies, len(node.outputs)))
    return hashlib.sha256(said.encode()).hexdigest()[:24]


def _of_value(value: Value | None, numbers: _Numbers) -> str:
    if value is None:
        return ""
    if value not in numbers:
        tensor = value.default
        key = "" if tensor is None else repr((tensor.dtype, tensor.shape))
        small = tensor is not None and tensor.nbytes <= 1024 and not tensor.is_sparse
        numbers[value] = key + (tensor.numpy().tobytes().hex() if small and tensor else value.name)
    return numbers[value]
