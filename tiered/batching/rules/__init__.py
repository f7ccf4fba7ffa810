"""The rules by domain and operator: what is not here cannot be followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tiered.batching.following import Rule
from tiered.batching.rules import (
    control_flow,
    generic,
    indexing,
    numbers,
    parts,
    recurrent,
    reshape,
    sizes,
)
from tiered.graph.queries.op_traits import BROADCASTING, UNARY

_CUT: Final = (
    "AveragePool", "BatchNormalization", "Conv", "DequantizeLinear", "Gemm", "GlobalAveragePool",
    "GlobalMaxPool", "LayerNormalization", "MaxPool", "QuantizeLinear", "RMSNormalization",
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
"""Operators with a rule of how a cut passes through, beside elementwise ones."""

_IMAGES: Final = (
    "ConvInteger", "ConvTranspose", "DepthToSpace", "GlobalLpPool", "GroupNormalization",
    "InstanceNormalization", "LRN", "LpPool", "QLinearConv", "SpaceToDepth",
)  # fmt: skip
"""Operators of [batch, channels, ...] with weights that all samples share."""

STANDARD: Final[Mapping[str, Rule]] = {
    **dict.fromkeys((*UNARY, *BROADCASTING, *_CUT), generic.followed),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), generic.softmax),
    **dict.fromkeys(_IMAGES, generic.leading(0)),
    **dict.fromkeys(("ArgMax", "ArgMin"), generic.arg_reduction),
    **dict.fromkeys(("CumProd", "CumSum"), generic.cumulative),
    **dict.fromkeys(("LpNormalization", "TopK"), generic.along_axis(-1)),
    **dict.fromkeys(("Resize", "Upsample"), sizes.resize),
    **dict.fromkeys(("GatherElements", "Scatter", "ScatterElements"), indexing.elements),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), recurrent.recurrent),
    "AffineGrid": sizes.affine_grid,
    "Attention": generic.attention,
    "CastLike": generic.cast_like,
    "Compress": indexing.compress,
    "Concat": parts.concat,
    "ConstantOfShape": sizes.made_of_sizes,
    "DeformConv": generic.leading(0, 2, 4),
    "Einsum": generic.einsum,
    "Expand": sizes.expand,
    "Flatten": reshape.flatten,
    "Gather": indexing.gather,
    "GatherND": indexing.gather_nd,
    "GridSample": generic.leading(0, 1),
    "If": control_flow.branches,
    "Loop": control_flow.loop,
    "MatMul": generic.matmul,
    "MatMulInteger": generic.rows_of_product(0, 1),
    "MeanVarianceNormalization": generic.normalized,
    "OneHot": generic.one_hot,
    "Pad": parts.pad,
    "QLinearMatMul": generic.rows_of_product(0, 3),
    "Range": sizes.number_range,
    "Reshape": reshape.reshape,
    "ReverseSequence": generic.reverse_sequence,
    "RotaryEmbedding": generic.rotary,
    "Scan": control_flow.scan,
    "ScatterND": indexing.scatter_nd,
    "Slice": parts.slices,
    "Split": parts.split,
    "Squeeze": reshape.squeeze,
    "Tile": sizes.tile,
    "Transpose": parts.transpose,
    "Trilu": generic.trilu,
    "Unsqueeze": reshape.unsqueeze,
}

NUMBERS: Final[Mapping[str, Rule]] = {
    **dict.fromkeys((*UNARY, *BROADCASTING), numbers.differently),
    **{
        name: numbers.kept(STANDARD[name])
        for name in ("Cast", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze",
                     "Transpose", "Unsqueeze")
    },
    "Add": numbers.added,
    "Concat": numbers.joined,
    "Gather": numbers.gather,
    "GatherND": numbers.gather_nd,
    "Mul": numbers.multiplied,
}  # fmt: skip
"""The rules of operators with numbers of samples among their operands."""

RULES: Final[Mapping[str, Mapping[str, Rule]]] = {"": STANDARD, "numbers": NUMBERS}
"""By domain and operator."""
