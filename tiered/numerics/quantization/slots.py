"""Which operands of operators that move elements are data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tiered.graph import Node, Value
from tiered.graph.queries.op_traits import AVERAGE_POOLS, BLOCKS, MAX_POOLS, REARRANGES

MOVERS: Final[Mapping[str, tuple[int, ...] | None]] = {
    "Concat": None,
    **dict.fromkeys(sorted(REARRANGES | BLOCKS | MAX_POOLS | {"Split"}), (0,)),
}
"""Operators whose results have the elements of their data, by the slots of that; None for all.

Input and output have one scale, so that quantising both loses nothing.
"""

ONE_SCALE: Final = AVERAGE_POOLS | MOVERS.keys() | {"Max", "Min"} | {"Pad", "Resize", "Where"}
"""Operators whose integer kernels have one scale for all operands and the result.

Source: LiteRT 8-bit quantization specification.
"""

ACTIVATIONS: Final = frozenset({"Clip", "Relu"})
"""Operators that kernels apply to the result of a product before it is quantised."""


def data_operands(node: Node) -> list[Value]:
    """Return the data of an operator that moves elements; empty for any other operator."""
    if node.domain or node.op_type not in MOVERS:
        return []
    slots = MOVERS[node.op_type]
    chosen = node.inputs if slots is None else [node.input(slot) for slot in slots]
    return [value for value in chosen if value is not None]
