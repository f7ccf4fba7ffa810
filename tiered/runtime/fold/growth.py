"""Growth: which constants may take more bytes than the nodes that they replace.

A constant is admissible if it alone fits into the limit, if folding it does not make room for one
that is too large, and if no consumer's size depends on it. Then a second run decides the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING

from tiered.rewriter.skip import Skip
from tiered.runtime.fold.candidates import (
    is_known,
    nodes_leading_to,
    outputs_of,
    outputs_used_elsewhere,
)
from tiered.runtime.fold.compute_cost import waits_for_operands
from tiered.runtime.fold.evaluate import freed_bytes

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value
    from tiered.runtime.fold.batch import Sizes


def admissible_growth(
    nodes: Set[Node], sizes: Sizes, limit: int, refused: dict[Node, Skip]
) -> dict[Value, int]:
    """Return the admissible constants, and by how many bytes each makes the model grow.

    Args:
        nodes: nodes that can be computed, in one session or several.
        sizes: the bytes of all their operands and outputs.
        limit: by how many bytes the model may grow.
        refused: gets the producers of the other constants, and why.
    """
    found: dict[Value, int] = {}
    close: set[Node] = set()
    freed_by_all = _bytes_of(nodes, sizes)
    pending = deque(outputs_used_elsewhere(nodes))
    # A constant that a waiting node needs exists for a while.
    pending.extend(v for v in outputs_of(nodes) if any(map(waits_for_operands, v.readers)))
    while pending:
        value = pending.popleft()
        node, growth = value.producer, sizes[value] - freed_bytes(value)
        if value in found or node is None or node in refused:
            continue
        if _decides_a_size(value, nodes, refused):
            refused[node] = Skip("its consumer has a data-dependent shape")
        elif growth <= limit:
            found[value] = max(growth, 0)
        else:
            refused[node] = Skip("the constant exceeds max_growth")
            if sizes[value] - freed_by_all > 2 * limit:
                # It is too large even when everything on which it depends is folded.
                pending.extend(v for v in node.inputs if v is not None and v.producer in nodes)
            else:
                close |= _close_to(value, nodes, sizes, limit)
    for value in [value for value in found if value.producer in close]:
        assert value.producer is not None
        refused[value.producer] = Skip("it would make room for a larger constant")
        del found[value]
    return found


def _decides_a_size(value: Value, nodes: Set[Node], refused: dict[Node, Skip]) -> bool:
    """Return whether the output size of a consumer depends on the elements of a value."""
    return any(
        reader not in nodes and reader not in refused and is_known(reader, nodes)
        for reader in value.readers
    )


def _bytes_of(nodes: Iterable[Node], sizes: Sizes) -> int:
    """Return the most that folding nodes can free: the nodes and all constants they read."""
    read = {v for node in nodes for v in (*node.inputs, *node.captured) if v and v.is_constant}
    return sum(sizes[value] for value in read) + sum(node.proto.ByteSize() for node in nodes)


def _close_to(value: Value, nodes: Set[Node], sizes: Sizes, limit: int) -> set[Node]:
    """Return the nodes whose folding might make a value fit that is too large.

    Growth of at most `limit` moves into the values on which it depends. If not even that is
    needed, each node that shares an operand with them is close too.
    """
    reach = set(nodes_leading_to([value], nodes))
    if value.producer is not None:
        reach.add(value.producer)
    least = sizes[value] - _bytes_of(reach, sizes)
    if least > 2 * limit:
        return set()
    if least <= limit:
        pending = [reader for node in reach for v in node.inputs if v for reader in v.readers]
        while pending:
            node = pending.pop()
            if node in nodes and node not in reach:
                reach.add(node)
                pending.extend(reader for v in node.outputs if v for reader in v.readers)
    return reach
