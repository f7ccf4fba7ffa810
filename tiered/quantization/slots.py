"""Which operands of operators are data, and which decide shapes and indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tiered.graph import Graph, Model, Node, Value

MOVERS: Final[Mapping[str, tuple[int, ...] | None]] = {
    "Concat": None,
    "DepthToSpace": (0,),
    "Expand": (0,),
    "Flatten": (0,),
    "Gather": (0,),
    "GlobalMaxPool": (0,),
    "Identity": (0,),
    "MaxPool": (0,),
    "Reshape": (0,),
    "Slice": (0,),
    "SpaceToDepth": (0,),
    "Split": (0,),
    "Squeeze": (0,),
    "Tile": (0,),
    "Transpose": (0,),
    "Unsqueeze": (0,),
}
"""Operators whose results have the elements of their data, by the slots of that; None for all.

Input and output have one scale, so that quantising both loses nothing.
"""

ONE_SCALE: Final = frozenset(
    {*MOVERS, "AveragePool", "GlobalAveragePool", "Max", "Min", "Pad", "Resize", "Where"}
)
"""Operators whose integer kernels have one scale for all operands and the result.

Source: LiteRT 8-bit quantization specification.
"""

ACTIVATIONS: Final = frozenset({"Clip", "Relu"})
"""Operators that kernels apply to the result of a product before it is quantised."""

_INDEX_SLOTS: Final[Mapping[str, tuple[int, ...]]] = {
    "CenterCropPad": (1,),
    "ConstantOfShape": (0,),
    "CumSum": (1,),
    "Expand": (1,),
    "EyeLike": (0,),
    "Gather": (1,),
    "GatherElements": (1,),
    "GatherND": (1,),
    "Loop": (0,),
    "OneHot": (0, 1),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "ReverseSequence": (1,),
    "Scatter": (1,),
    "ScatterElements": (1,),
    "ScatterND": (1,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
"""The operands that are shapes, indices, axes or sizes."""

_SELECTS: Final = frozenset(
    {
        *("ArgMax", "ArgMin", "Equal", "Greater", "GreaterOrEqual", "Hardmax", "Less"),
        *("LessOrEqual", "Multinomial", "NonMaxSuppression", "NonZero", "Shape", "Size", "TopK"),
    }
)
"""Operators whose integers are in range whatever the data is, or do not depend on it."""


def index_nodes(model: Model) -> frozenset[Node]:
    """Return the nodes whose results reach a shape, an index, an axis or a size.

    Arithmetic on floats is followed too, as in the buckets of relative positions; operators that
    select elements end the search, as their indices are valid for any data.
    """
    pending: list[Value] = []
    for graph in graphs_of(model):
        for node in graph.topological_order():
            slots = () if node.domain else _INDEX_SLOTS.get(node.op_type, ())
            if node.op_type.startswith("Reduce") and not node.domain:
                slots = (1,)
            pending += [value for slot in slots if (value := node.input(slot)) is not None]
    found: set[Node] = set()
    while pending:
        node_ = pending.pop().producer
        if node_ is None or node_ in found or node_.op_type in _SELECTS:
            continue
        found.add(node_)
        pending += [value for value in node_.inputs if value is not None]
    return frozenset(found)


def data_operands(node: Node) -> list[Value]:
    """Return the data of an operator that moves elements; empty for any other operator."""
    if node.domain or node.op_type not in MOVERS or node.has_references:
        return []
    slots = MOVERS[node.op_type]
    chosen = node.inputs if slots is None else [node.input(slot) for slot in slots]
    return [value for value in chosen if value is not None]


def graphs_of(model: Model) -> list[Graph]:
    """Return the main graph and all bodies, without those of local functions."""
    return [graph for graph in model.graphs() if not graph.is_function]
