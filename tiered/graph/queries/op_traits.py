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

ARITHMETIC: Final = ("Add", "Div", "Mul", "Sub")

RING: Final = frozenset({"Add", "Mul", "Neg", "Sub", "Sum"})
"""Operators whose results of integers are integers, and of small numbers of their order."""

LOGIC: Final = ("And", "Or", "Xor")

BITWISE: Final = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")

COMPARISONS: Final = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")

COMMUTATIVE: Final = frozenset(
    {*BITWISE, *LOGIC, "Add", "Equal", "Max", "Mean", "Min", "Mul", "Sum"}
)
"""Operators that compute the same from two operands in either order."""

CLAMPS: Final = frozenset({"Clip", "Max", "Min"})
"""Operators that bound numbers."""

ROUNDINGS: Final = ("Ceil", "Floor", "Round")

CASTS: Final = ("Cast", "CastLike")

ARG_REDUCTIONS: Final = ("ArgMax", "ArgMin")

SAME_AT_ALL_PLACES: Final = frozenset(
    {*ARITHMETIC, *CASTS, *COMPARISONS, *LOGIC, *ROUNDINGS, "Abs", "Clip", "IsNaN", "LeakyRelu"}
    | {"Neg", "Not", "Relu", "Sign", "Sqrt"}
)
"""Elementwise operators whose kernels give an element the same bits at each place of a tensor.

Vectorised kernels of other functions, as Exp, compute the last elements in another way.
"""

SOFTMAXES: Final = ("Hardmax", "LogSoftmax", "Softmax")

NORMALIZATIONS: Final = frozenset(
    {
        "BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization",
        "LpNormalization", "MeanVarianceNormalization", "RMSNormalization",
    }
)  # fmt: skip

PRODUCTS: Final = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators that multiply with weights."""

AVERAGE_POOLS: Final = frozenset({"AveragePool", "GlobalAveragePool"})

MAX_POOLS: Final = frozenset({"GlobalMaxPool", "MaxPool"})

KEEPS_SMALL: Final = frozenset(
    {"Abs", "Celu", "CumSum", "Elu", "Erf", "LeakyRelu", "PRelu", "ReduceL1", "ReduceL2",
     "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Relu", "Softsign", "Tanh"}
)  # fmt: skip
"""Of elements that are all small and positive, the results are about as small."""

SELECTS_EXTREMES: Final = MAX_POOLS | {"Max", "Min", "ReduceMax", "ReduceMin"}
"""Operators that select the largest or the least of several elements."""

BODIES: Final = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Operators with bodies."""

ELEMENTWISE: Final = frozenset((*UNARY, *BROADCASTING))
"""Operators that compute each output element from the input elements at the same index."""

VIEWS: Final = ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that keep all elements in their order: a view of the operand in another shape."""

REARRANGES: Final = frozenset({*VIEWS, "Expand", "Gather", "Slice", "Tile", "Transpose"})
"""Operators that take, repeat or permute whole slices of their first operand."""

BLOCKS: Final = frozenset({"DepthToSpace", "SpaceToDepth"})
"""Operators that move elements between channels and space."""

MOVES_FIRST: Final = (
    REARRANGES | BLOCKS | {"GatherElements", "GatherND", "ReverseSequence", "Split"}
)
"""Operators that only take elements from their first operand, for all results."""

MOVES_ELEMENTS: Final = MOVES_FIRST | {"Concat", "Pad", "Where"}
"""Operators that move elements: each element of a result is one of an operand, or a pad."""

RANDOM: Final = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike"}
)  # fmt: skip
"""Operators that may draw random numbers; a Dropout does so only in training."""
