"""How an operator can be fused with its consumers: the pattern kinds of TVM, for ONNX."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from tiered.graph import is_deterministic

if TYPE_CHECKING:
    from tiered.graph import Node


class Kind(IntEnum):
    """TVM's OpPatternKind; a larger kind is harder to fuse."""

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = 3
    OUT_ELEMENTWISE_FUSABLE = 4
    OPAQUE = 8


_KINDS: Final = {
    Kind.ELEMENTWISE: (
        "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh Elu "
        "Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not "
        "Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan "
        "Tanh ThresholdedRelu"
    ),
    Kind.BROADCAST: (
        "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Expand Greater GreaterOrEqual "
        "Less LessOrEqual Max Mean Min Mod Mul Or Pow PRelu Sub Sum Where Xor"
    ),
    Kind.INJECTIVE: (
        "Concat DepthToSpace Flatten Gather GatherElements GatherND Pad Reshape Resize "
        "ReverseSequence Slice SpaceToDepth Squeeze Tile Transpose Trilu Unsqueeze Upsample"
    ),
    Kind.REDUCTION: (
        "ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
        "ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    ),
    Kind.OUT_ELEMENTWISE_FUSABLE: (
        "AveragePool BatchNormalization Conv ConvInteger ConvTranspose Gemm GlobalAveragePool "
        "GlobalMaxPool LRN LpPool MatMul MatMulInteger MaxPool"
    ),
}
_KIND_OF: Final = {op: kind for kind, names in _KINDS.items() for op in names.split()}


def kind_of(node: Node) -> Kind:
    """Return the kind of a node.

    Opaque are unknown operators, random ones, nodes with bodies, those of several outputs, and
    those that read and write quantized values, which backends match as pairs.
    """
    if node.domain or sum(output is not None for output in node.outputs) != 1:
        return Kind.OPAQUE
    kind = _KIND_OF.get(node.op_type, Kind.OPAQUE)
    return kind if kind is not Kind.OPAQUE and is_deterministic(node) else Kind.OPAQUE
