"""Traits of operators of ONNX's own domain: the one table of what is true of several of them.

A place that needs fewer operators writes the difference, and why: `MOVES_ELEMENTS - {"GatherND"}`.
"""

from typing import Final

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

REDUCTIONS: Final = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
"""Operators that compute one element of all elements along some axes."""

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

VIEWS: Final = ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that keep all elements in their order: a view of the operand in another shape."""

RANDOM: Final = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike"}
)  # fmt: skip
"""Operators that may draw random numbers; a Dropout does so only in training."""
