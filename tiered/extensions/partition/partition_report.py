"""What partitions contain and exchange: nodes, bytes, multiply-adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.partition.boundary import boundary_of
from tiered.extensions.partition.partitioner import Partition
from tiered.extensions.partition.separate import HOST
from tiered.graph import Model, Node, Value
from tiered.graph.queries.multiply_adds import multiply_adds


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
        operators=Counter(node.operator for node in nodes),
        bytes_in=sum(_bytes(value, sizes) for value in edge.variables),
        bytes_out=sum(_bytes(value, sizes) for value in edge.outputs),
        multiply_adds=sum(multiply_adds(node, sizes.known_dims) for node in nodes),
    )


def _bytes(value: Value, sizes: LayoutSizes) -> int:
    return 0 if value.shape is None else sizes.nbytes(value)
