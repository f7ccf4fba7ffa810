"""Traits of operators: elementwise, moving, random, deterministic, padding of spatial axes only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from onnx.defs import OpSchema

from tiered.graph.core.types import non_negative_axes

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

UNARY: Final = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "CastLike",
    "Ceil", "Celu", "Clip", "Cos", "Cosh", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu",
    "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg",
    "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh",
    "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
)  # fmt: skip
"""Elementwise operators of one tensor; their other operands are scalars, or set only a dtype."""

BROADCASTING: Final = (
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu",
    "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip

ELEMENTWISE: Final = frozenset((*UNARY, *BROADCASTING))
"""Operators that compute each output element from the input elements at the same index."""

MOVES: Final = frozenset(
    {
        "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
        "Identity", "Pad", "Reshape", "ReverseSequence", "Slice", "SpaceToDepth", "Split",
        "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
    }
)  # fmt: skip
"""Operators that move elements: each element of a result is one of an operand, or a pad."""

RANDOM: Final = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike"}
)  # fmt: skip
"""Operators that may draw random numbers; a Dropout does so only in training."""

# The schemas call these non-deterministic only because they contain, or are defined by, bodies.
_AS_THEIR_BODIES: Final = frozenset({"AffineGrid", "If", "Loop", "Scan", "SequenceMap"})


def is_deterministic(node: Node) -> bool:
    """Return whether a node always computes equal outputs from equal inputs.

    A fixed seed makes no difference: two draws differ. Unknown operators and calls of local
    functions count as random; a Dropout is random only in training.
    """
    schema = node.schema
    if schema is None:
        return False
    if node.domain == "" and node.op_type == "Dropout":
        training = node.operand("training_mode")
        return training is None or (training.const is not None and not training.const.any())
    if node.domain == "" and node.op_type in RANDOM:
        return False
    if node.domain == "" and node.op_type in _AS_THEIR_BODIES:
        return all(is_deterministic(inner) for body in node.bodies for inner in body.nodes)
    determinism = getattr(schema, "node_determinism", None)
    return determinism != OpSchema.NodeDeterminism.NonDeterministic


def spatial_pads(x: Value, pads: Value, axes: Value | None) -> list[int] | None:
    """Return the pads of the spatial axes: the begins of all axes, then the ends.

    None if they are unknown, if an axis is cropped, or if other axes are padded too.

    Args:
        x: the padded value, of shape [batch, channels, *spatial].
        pads, axes: the operands of the Pad.
    """
    if x.rank is None or x.rank < 3 or pads.const is None:
        return None
    rank, amounts = x.rank, pads.const.ravel().tolist()
    places: Sequence[int] | None = range(rank)
    if axes is not None:
        places = None if axes.const is None else non_negative_axes(axes.const.ravel(), rank)
    if places is None or len(amounts) != 2 * len(places) or any(size < 0 for size in amounts):
        return None
    whole = np.zeros((2, rank), np.int64)
    whole[:, list(places)] = np.reshape(amounts, (2, len(places)))
    return None if whole[:, :2].any() else [int(size) for size in whole[:, 2:].ravel()]
