"""What partitions contain and exchange: nodes, bytes, multiply-adds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tiered.backends.coverage import operator_name
from tiered.graph import Model, Node, TensorType, Value
from tiered.layout.sizes import LayoutSizes
from tiered.partition.boundary import boundary_of
from tiered.partition.partitioner import Partition
from tiered.partition.separate import HOST

_PRODUCTS: Final = frozenset({"MatMul", "MatMulInteger", "QLinearMatMul"})
_CONVOLUTIONS: Final = frozenset({"Conv", "ConvInteger", "QLinearConv"})


@dataclass(frozen=True, kw_only=True)
class Region:
    """One row of a report.

    Attributes:
        name: the number of the partition, and its target.
        target: the target; "host" for the nodes that none takes.
        nodes: the number of its nodes; those of bodies do not count.
        operators: the number of nodes of each operator.
        bytes_in, bytes_out: what crosses its boundary, without constants.
        multiply_adds: of its products and convolutions.
    """

    name: str
    target: str
    nodes: int
    operators: Counter[str]
    bytes_in: int
    bytes_out: int
    multiply_adds: int


def report_of(
    model: Model, partitions: Sequence[Partition], sizes: LayoutSizes | None = None
) -> list[Region]:
    """Return a row for each partition of the main graph, and one for the rest if there is any.

    Args:
        model: the model.
        partitions: partitions of its main graph.
        sizes: of dynamic dims; 16 each by default.
    """
    sizes = sizes or LayoutSizes()
    rows = [_row(_name(part), part.target, part.nodes, sizes) for part in partitions]
    taken = {node for part in partitions for node in part.nodes}
    rest = [node for node in model.main.topological_order() if node not in taken]
    rest = [node for node in rest if not node.is_op("Constant")]
    return [*rows, _row(HOST, HOST, rest, sizes)] if rest else rows


def _name(part: Partition) -> str:
    return f"{part.id}" if not part.target else f"{part.target} {part.id}"


def _row(name: str, target: str, nodes: Sequence[Node], sizes: LayoutSizes) -> Region:
    edge = boundary_of(nodes)
    return Region(
        name=name,
        target=target,
        nodes=len(nodes),
        operators=Counter(map(operator_name, nodes)),
        bytes_in=sum(_bytes(value, sizes) for value in edge.variables),
        bytes_out=sum(_bytes(value, sizes) for value in edge.outputs),
        multiply_adds=sum(multiply_adds(node, sizes) for node in nodes),
    )


def _bytes(value: Value, sizes: LayoutSizes) -> int:
    return 0 if value.shape is None else sizes.nbytes(value)


def multiply_adds(node: Node, sizes: LayoutSizes) -> int:
    """Return the multiply-adds of a node; 0 for other operators than products and convolutions.

    A body counts once: the trip count of a loop is not known in general.
    """
    inner = sum(multiply_adds(each, sizes) for body in node.bodies for each in body.nodes)
    output = node.outputs[0] if node.outputs else None
    if node.domain or output is None or output.shape is None:
        return inner
    made = math.prod(sizes.dims(output))
    if node.op_type in _PRODUCTS:
        return inner + made * _last_dim(node.input(0), sizes)
    if node.op_type == "Gemm":
        axis = 0 if node.attr("transA") else 1
        return inner + made * _dim(node.input(0), axis, sizes)
    if node.op_type in _CONVOLUTIONS:
        weight = node.input(3 if node.op_type == "QLinearConv" else 1)
        return inner + made * _kernel(weight, sizes)
    if node.op_type == "ConvTranspose":
        x = node.input(0)
        read = 0 if x is None or x.shape is None else math.prod(sizes.dims(x))
        return inner + read * _kernel(node.input(1), sizes)
    return inner


def _last_dim(value: Value | None, sizes: LayoutSizes) -> int:
    return _dim(value, -1, sizes)


def _dim(value: Value | None, axis: int, sizes: LayoutSizes) -> int:
    if value is None or not isinstance(value.type, TensorType) or not value.shape:
        return 1
    return sizes.dims(value)[axis]


def _kernel(weight: Value | None, sizes: LayoutSizes) -> int:
    if weight is None or weight.shape is None:
        return 1
    return math.prod(sizes.dims(weight)[1:])
