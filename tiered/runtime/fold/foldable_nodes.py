"""The nodes that depend on constants alone, and how their values reach each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING, Final

from tiered.rewriter.skip import Skip
from tiered.runtime.fold.numpy_moves import MOVES

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

# Quantised weights stay quantised, and a Constant is a constant already.
_KEPT: Final = frozenset(
    {"Constant", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear"}
)

_SMALL: Final = 64
"""The most bytes of a constant that a body may repeat, instead of an Identity of an outer one."""

_NONE: Final = frozenset["Node"]()


def known_nodes(graph: Graph) -> list[Node]:
    """Return the nodes of a graph that read only constants, in topological order."""
    known = {node for node in graph.nodes if is_known(node, _NONE)}
    return [node for node in graph.topological_order() if node in known] if known else []


def is_known(node: Node, taken: Set[Node]) -> bool:
    """Return whether each operand of a node is constant, or an output of the `taken` nodes."""
    has_operand = False
    for value in node._inputs:
        if value is None:
            continue
        has_operand = True
        producer = value.producer
        if producer is not None and producer.op_type != "Constant":
            # Asked for every node of a model: most are out with their first operand.
            if producer not in taken:
                return False
            continue
        tensor = value.tensor
        if tensor is None or tensor.is_sparse:
            return False
    if _is_kept(node) or not has_operand:
        return False
    if not all(value.is_constant for value in node.captured):
        return False
    if node.op_type != "Identity" or not node.output.output_of:
        return True
    # An Identity for the name of an output remains, unless a body can have a constant of its own.
    tensor, graph = node.given(0).tensor, node.owner
    is_small = tensor is not None and tensor.nbytes <= _SMALL
    return is_small and graph.parent_node is not None and _holds_constants(graph)


def _is_kept(node: Node) -> bool:
    """Return whether a node is not computed: of other domains, those are that numpy computes."""
    return MOVES.of(node) is None if node.domain else node.op_type in _KEPT


def _holds_constants(graph: Graph) -> bool:
    """Return whether a constant of a graph needs no node."""
    return not graph.root.is_function and graph.model.ir_version >= 4


def never_computed(graph: Graph) -> Iterator[tuple[Node, Skip]]:
    """Yield the nodes that are not computed although all operands are constants, and why."""
    has_sparse = any(value.tensor and value.tensor.is_sparse for value in graph.initializers)
    has_kept = any(domain or op_type in _KEPT for domain, op_type in graph._by_op)
    for node in graph.nodes if has_sparse or has_kept else ():
        if not (node.domain or has_sparse or node.op_type in _KEPT):
            continue
        operands = [value for value in node.inputs if value is not None]
        tensors = [value.tensor for value in operands if value.tensor is not None]
        if not operands or len(tensors) < len(operands):
            continue
        if node.domain and MOVES.of(node) is None:
            yield node, Skip("the operator is not a standard one")
        elif node.op_type in _KEPT:
            yield node, Skip("quantised constants stay quantised")
        elif any(tensor.is_sparse for tensor in tensors):
            yield node, Skip("an operand is sparse")


def outputs_of(nodes: Iterable[Node]) -> Iterator[Value]:
    """Yield the outputs of nodes, in the order of the nodes' ids."""
    for node in sorted(nodes, key=lambda node: node.id):
        yield from (value for value in node.outputs if value is not None)


def outputs_used_elsewhere(nodes: Set[Node]) -> Iterator[Value]:
    """Yield the outputs of nodes that are graph outputs or have other consumers."""
    for value in outputs_of(nodes):
        if value.output_of or any(use.node not in nodes for use in value.users):
            yield value


def nodes_leading_to(values: Iterable[Value], nodes: Set[Node]) -> list[Node]:
    """Return those of some nodes on which the producers of values depend."""
    found: dict[Node, None] = {}
    pending = [value.producer for value in values]
    while pending:
        node = pending.pop()
        for value in node.inputs if node is not None else ():
            producer = value.producer if value is not None else None
            if producer is not None and producer in nodes and producer not in found:
                found[producer] = None
                pending.append(producer)
    return list(found)
