"""Halves to float, so that products have operands that kernels of integers take."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tiered.analysis.roles.role import graphs_of
from tiered.graph import DataType, Model, Node
from tiered.numerics.precision.narrowing import Narrowing, is_in_unit
from tiered.numerics.precision.plan_rewrite import convert_precision
from tiered.support.amounts import counted

Array = np.ndarray[Any, Any]

_HALVES: Final = (DataType.FLOAT16, DataType.BFLOAT16)


class Widening(Narrowing):
    """From a type of 16 bits to float: no number of a constant changes.

    A table that a Gather reads stays as it is: in float it would be twice as large.

    Args:
        half: the type of 16 bits.
    """

    low = DataType.FLOAT

    def __init__(self, half: DataType) -> None:
        self.wide = half

    def keep(self, node: Node) -> str:
        """Return why a node stays as it is."""
        if is_in_unit(node):
            return "inside a Q/DQ unit"
        constants = [value for value in node.inputs if value is not None and value.is_constant]
        halves = [value.tensor for value in constants if value.dtype == self.wide]
        if any(tensor is None or tensor.is_sparse for tensor in halves):
            return "a sparse constant"
        return "a table is smaller in 16 bits" if node.is_op("Gather") and halves else ""

    def converted(self, array: Array) -> tuple[Array, bool]:
        """Return numbers in float32; none is beyond its range."""
        return array.astype(np.float32), False


def widen_products(model: Model, products: frozenset[str]) -> list[str]:
    """Compute in float what computes in 16 bits, if a product does; inputs and outputs stay.

    Args:
        model: edited in place.
        products: the operators that count.

    Returns:
        What was done, in words; nothing if no product computes in 16 bits.
    """
    found = []
    for half in _HALVES:
        nodes = (node for graph in graphs_of(model) for node in graph.topological_order())
        read = (node.given(0) for node in nodes if not node.domain and node.op_type in products)
        if not any(value.dtype == half for value in read):
            continue
        done = convert_precision(model, Widening(half))
        widened = {each.node for each in done.plan.low if each.node is not None}
        count = counted(len(widened), "node computes", "nodes compute")
        found.append(f"{count} in float instead of {half.name.lower()}: integers have float scales")
        model.refresh_types()
    return found
