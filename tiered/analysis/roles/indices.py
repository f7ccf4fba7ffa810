"""Indices and shapes: what decides where elements are, and how many there are."""

from __future__ import annotations

from typing import Final

from tiered.analysis.roles.role import Role, graphs_of
from tiered.graph import Model, Node, Value
from tiered.graph.opset.aspect import Aspect
from tiered.graph.queries.op_traits import (
    ARG_REDUCTIONS,
    BLOCKS,
    COMPARISONS,
    MOVES_FIRST,
    REDUCTIONS,
)

INDICES: Final[Aspect[tuple[int, ...]]] = Aspect("index")
"""The operands that are shapes, indices, axes or sizes."""

# The others have no such operand, or several.
INDICES.put(MOVES_FIRST - BLOCKS - {"Flatten", "Identity", "Slice", "Transpose"}, "", (1,))
INDICES.put(REDUCTIONS, "", (1,))
INDICES.put(("Scatter", "ScatterElements", "ScatterND", "Upsample"), "", (1,))
INDICES.put(("CenterCropPad", "CumSum", "TopK", "Trilu"), "", (1,))
INDICES.put(("ConstantOfShape", "Loop"), "", (0,))
INDICES.put(("OneHot",), "", (0, 1))
INDICES.put(("Pad",), "", (1, 3))
INDICES.put(("Range",), "", (0, 1, 2))
INDICES.put(("Resize",), "", (1, 2, 3))
INDICES.put(("Slice",), "", (1, 2, 3, 4))

_SELECTS: Final = frozenset(
    {*ARG_REDUCTIONS, *COMPARISONS, "Hardmax", "IsInf", "IsNaN"}
    | {"Multinomial", "NonMaxSuppression", "NonZero"}
    | {"Shape", "Size", "TopK"}
)
"""Operators whose integers are in range whatever the data is, or do not depend on it."""


_LEARNED: Final = frozenset(
    {"Attention", "Conv", "ConvTranspose", "DeformConv", "Einsum", "GRU", "Gemm", "LSTM",
     "LayerNormalization", "MatMul", "RMSNormalization", "RNN"}
)  # fmt: skip
"""Operators that compute data: indices that are computed from it are as exact as the data is."""


def index_roles(model: Model) -> dict[Node, Role]:
    """Return the nodes of floats that a shape, an index, an axis or a size is computed by."""
    nodes = (node for node in _before_indices(model) if node.op_type not in _LEARNED)
    return dict.fromkeys(nodes, _ROLE)


def index_product_roles(model: Model) -> dict[Node, Role]:
    """Return these nodes and the operators of data that they read: bits of these are few.

    What such an operator reads in turn is data, as exact as its type.
    """
    return dict.fromkeys(_before_indices(model), _ROLE)


_ROLE: Final = Role("index or shape", "it decides where elements are")


def _before_indices(model: Model) -> dict[Node, None]:
    """Return the nodes whose results reach a shape, an index, an axis or a size.

    Arithmetic on floats is followed too, as in the buckets of relative positions, up to operators
    of data; operators that select elements end the search, as their indices are valid for any data.
    """
    pending: list[Value] = []
    for graph in graphs_of(model):
        for node in graph.topological_order():
            slots = INDICES.of(node) or ()
            pending += [value for slot in slots if (value := node.input(slot)) is not None]
    found = dict[Node, None]()
    while pending:
        node_ = pending.pop().producer
        if node_ is None or node_ in found or node_.op_type in _SELECTS:
            continue
        found[node_] = None
        if node_.op_type in _LEARNED:
            continue
        read = node_.inputs[:1] if node_.is_op("CastLike") else node_.inputs  # the rest is a dtype
        pending += [value for value in read if value is not None]
    return found
