"""The rules by operator: what is not here is refused, unless all operands are constant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tiered.graph.queries.op_traits import BROADCASTING, UNARY
from tiered.packing import indexing, mixing, pointwise, structure
from tiered.packing.interpretation import Rule

RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(UNARY, pointwise.unary),
    **dict.fromkeys(BROADCASTING, pointwise.broadcasting),
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), structure.reshaping),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), mixing.softmax),
    **dict.fromkeys(("CumProd", "CumSum", "LpNormalization", "TopK"), mixing.along_axis),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), mixing.from_axis_on),
    **dict.fromkeys(
        ("BatchNormalization", "DequantizeLinear", "QuantizeLinear"), mixing.per_channel
    ),
    **dict.fromkeys(
        (
            "ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
            "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
        ),
        mixing.reduction,
    ),
    "Concat": structure.concat,
    "ConstantOfShape": structure.fill,
    "Expand": structure.expand,
    "Gather": structure.gather,
    "GatherND": indexing.gather_nd,
    "Gemm": mixing.gemm,
    "MatMul": mixing.matmul,
    "Range": structure.number_range,
    "Slice": structure.slices,
    "Split": structure.split,
    "Transpose": structure.transpose,
}  # fmt: skip
