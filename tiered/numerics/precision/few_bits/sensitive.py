"""The weights whose rounding costs most."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import networkx as nx

from tiered.graph import Model, Node
from tiered.graph.queries.multiply_adds import LAYERS
from tiered.numerics.precision.few_bits.readers import WEIGHTS, nodes_of, readers_in
from tiered.numerics.precision.node_effects import effects_for

Chooser = Callable[[Sequence[Node]], bool]
"""Returns whether a weight that some nodes read is stored in a format."""

_SENSITIVE: Final = frozenset({"Conv", "ConvTranspose", "Gather"})

Feeds = Callable[[], Sequence[Mapping[str, Any]]]

_COARSER: Final = 16
"""The step of four bits, in that of 8."""

_LARGEST_SHARE: Final = 1 / 10
"""Kernels that stay float have at most this part of the bytes of all weights."""


def chooser_of(*, is_sensitive: bool, last: Collection[Node]) -> Chooser:
    """Return what chooses the weights whose rounding costs most, or the others."""

    def choose(nodes: Sequence[Node]) -> bool:
        return is_sensitive == any(node in last or node.op_type in _SENSITIVE for node in nodes)

    return choose


def last_products(model: Model, least: int) -> set[Node]:
    """Return the products of the main graph that no other layer depends on, as the head of a model.

    Their rounding reaches the outputs as it is. A model of one layer has none.

    Args:
        model: the model.
        least: products with a weight of fewer elements stay float, and do not count.
    """
    found, before, layers = set[Node](), set[Node](), 0
    for node in reversed(model.main.topological_order()):
        is_counted = _is_layer(node, least)
        layers += is_counted
        if is_counted and node not in before:
            found.add(node)
        if is_counted or node in before:
            producers = (value.producer for value in node.inputs if value is not None)
            before.update(producer for producer in producers if producer is not None)
    return found if layers > len(found) else set()


def _is_layer(node: Node, least: int) -> bool:
    """Return whether a node is a product or made of such, and has no small weight."""
    if node.domain or node.op_type not in (WEIGHTS | LAYERS) - {"Gather"}:
        return False
    tensors = [value.tensor for value in node.inputs[:2] if value is not None]
    return all(tensor is None or tensor.size >= least for tensor in tensors)


def undiluted_kernels(model: Model, least: int, feeds: Feeds) -> set[Node]:
    """Return the Convs that stay float, as their rounding would decide that of the outputs.

    Every path from an input to an output passes them, so that nothing that is added dilutes their
    error; in 8 bits it would move the outputs further than all weights of four bits together, by
    gradients; and their kernels have at most a tenth of the bytes of all weights.

    Args:
        model: the model.
        least: smaller kernels stay float anyway.
        feeds: returns samples; without any, no Conv is returned.

    Raises:
        RuntimeFailure: onnxruntime does not run the model.
    """
    kernels = {
        node: tensor.nbytes
        for node in model.main.topological_order()
        if not node.domain
        and node.op_type in ("Conv", "ConvTranspose")
        and (tensor := node.given(1).tensor) is not None
        and tensor.size >= least
    }
    if not kernels:
        return set()
    found = [node for node in _on_every_path(model) if node in kernels]
    if not found or sum(kernels[node] for node in found) > _LARGEST_SHARE * model.nbytes:
        return set()
    last = last_products(model, least)
    others = [
        node
        for value, uses in readers_in(model)[0].items()
        if value.tensor is not None and value.tensor.size >= least
        for node in nodes_of(uses)
        if node not in last and node.op_type not in _SENSITIVE
    ]
    samples = feeds() if others else ()
    effects = effects_for("auto", model, [*found, *others], samples[:1]) if samples else None
    if not effects:
        return set()
    own, rest = (sum(effects.get(node, 0.0) ** 2 for node in nodes) for nodes in (found, others))
    return set(found) if own > _COARSER**2 * rest else set()


def _on_every_path(model: Model) -> list[Node]:
    """Return the nodes that all data passes between the inputs and the outputs."""
    paths: nx.DiGraph[Node | str] = nx.DiGraph()
    source, sink = "inputs", "outputs"
    paths.add_nodes_from((source, sink))  # a model of constants alone reads no input
    inputs = set(model.main.inputs)
    for node in model.main.topological_order():
        if not inputs.isdisjoint(node.inputs):
            paths.add_edge(source, node)
        if node.is_op("Shape") or node.is_op("Size"):
            continue  # sizes are no data
        paths.add_edges_from((node, reader) for reader in node.successors)
        if any(value is not None and value.is_graph_output for value in node.outputs):
            paths.add_edge(node, sink)
    if not nx.has_path(paths, source, sink):
        return []
    before, found = nx.immediate_dominators(paths, source), list[Node]()
    at = before[sink]
    while isinstance(at, Node):
        found.append(at)
        at = before[at]
    return found
