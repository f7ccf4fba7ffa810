"""Tied tables: a product that reads the Transpose of a constant gets a weight of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from tiered.analysis.roles.role import graphs_of
from tiered.graph import DataType, Model, Node, Value

_PRODUCTS: Final = frozenset({"Gemm", "MatMul"})


def untie(model: Model) -> Mapping[Value, Value]:
    """Let MatMul and Gemm read the transposed numbers of a table, as a weight is read.

    The table stays for its other readers, such as a Gather. The copy in integers is a quarter.

    Args:
        model: edited in place; its types are known.

    Returns:
        The weights, each with the result of the Transpose that products read before.
    """
    made: dict[Value, Value] = {}
    for node, slot, moved in list(_moved(model)):
        assert moved.producer is not None
        table = moved.producer.given(0)
        assert table.tensor is not None
        known = [weight for weight, old in made.items() if old is moved]
        if not known:
            array = np.ascontiguousarray(table.tensor.numpy().T)
            known = [moved.owner.constant(array, f"{table.name}_transposed")]
            made[known[0]] = moved
        node.owner.set_input(node, slot, known[0])
    return made


def tie_again(made: Mapping[Value, Value]) -> None:
    """Let products that are not quantised read the result of the Transpose again.

    Args:
        made: as `untie` returned it.
    """
    for weight, moved in made.items():
        for use in tuple(weight.users):
            use.node.owner.set_input(use.node, use.slot, moved)
        moved.owner.discard(weight)


def _moved(model: Model) -> Iterator[tuple[Node, int, Value]]:
    """Yield the operands of products that are a Transpose of a constant matrix of floats."""
    for graph in graphs_of(model):
        for node in graph.topological_order():
            if node.domain or node.op_type not in _PRODUCTS:
                continue
            for slot in (0, 1):
                value = node.given(slot)
                if value.owner is graph and _is_table(value.producer):
                    yield node, slot, value


def _is_table(node: Node | None) -> bool:
    """Return whether a node is the Transpose of a constant matrix of floats."""
    if node is None or not node.is_op("Transpose"):
        return False
    tensor = node.given(0).tensor
    if tensor is None or tensor.is_sparse or tensor.dtype != DataType.FLOAT or not tensor.size:
        return False
    return len(tensor.shape) == 2 and list(node.attr("perm") or (1, 0)) == [1, 0]
