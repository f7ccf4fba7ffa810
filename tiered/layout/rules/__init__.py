"""The rules: how permutations propagate through each operator, one table by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from tiered.errors import UsageError
from tiered.graph import Node
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.graph.queries.op_traits import BROADCASTING, UNARY
from tiered.layout.propagation import Propagation, Rule
from tiered.layout.rules import axes, elementwise, normalization, products, structure, vectors
from tiered.rewriter import Skip

STANDARD: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(UNARY, elementwise.unary),
    **dict.fromkeys(BROADCASTING, elementwise.broadcasting),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), elementwise.quantization),
    **dict.fromkeys(("Concat", "GatherElements", "ScatterElements", "Scatter"), axes.along()),
    **dict.fromkeys(("LpNormalization", "Split", "TopK"), axes.along(0)),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), axes.softmax),
    **dict.fromkeys(("CumProd", "CumSum"), axes.cumulative),
    **dict.fromkeys(
        (
            "ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
            "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
        ),
        axes.reduction,
    ),
    "BatchNormalization": normalization.batch_normalization,
    "Compress": structure.compress,
    "Dropout": elementwise.dropout,
    "Einsum": products.einsum,
    "Expand": vectors.expand,
    "Flatten": structure.reshape,
    "Gather": structure.gather,
    "GatherND": structure.gather_nd,
    "Gemm": products.gemm,
    "GroupNormalization": normalization.instance_normalization,
    "InstanceNormalization": normalization.instance_normalization,
    "LRN": normalization.batch_normalization,
    "LayerNormalization": normalization.layer_normalization,
    "MatMul": products.matmul,
    "MeanVarianceNormalization": axes.mean_variance,
    "OneHot": axes.one_hot,
    "Pad": vectors.pad,
    "RMSNormalization": normalization.layer_normalization,
    "Reshape": structure.reshape,
    "Resize": vectors.resize,
    "ReverseSequence": axes.reverse_sequence,
    "ScatterND": structure.scatter_nd,
    "Shape": structure.shape_of,
    "Size": structure.size_of,
    "Slice": vectors.slices,
    "Squeeze": axes.squeeze,
    "Tile": vectors.tile,
    "Trilu": axes.trilu,
    "Unsqueeze": axes.unsqueeze,
    "Upsample": vectors.upsample,
}  # fmt: skip

MICROSOFT: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(elementwise.UNARY_MICROSOFT, elementwise.unary),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), elementwise.quantized_binary),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), elementwise.quantization),
}

RULES: Final[Mapping[str, Mapping[str, Rule]]] = {"": STANDARD, "com.microsoft": MICROSOFT}
"""By domain and operator."""

REGISTERED: Final[dict[tuple[str, str], Rule]] = {}
"""The rules of `layout_rule`, by domain and operator."""

AnyRule = TypeVar("AnyRule", bound=Rule)

_OF_ANY_OPSET: Final = ("LayerNormalization",)
"""Operators that onnxruntime writes in opsets older than the first that has them."""

FIXED: Final = Skip("the operator fixes its axis order")


def layout_rule(*op_types: str, domain: str) -> Callable[[AnyRule], AnyRule]:
    """Register the decorated function as the layout rule of custom operators.

        @layout_rule("Scale", domain="my.domain")
        def scale(node):
            rank = node.inputs[0].rank
            if rank is None:
                return Skip("its rank is not known")
            labels = tuple(range(rank))
            return Propagation((labels,), (labels,), lambda op: op.emit({0: op.operand(0)}))

    A rule takes a node and returns a `Propagation`: which axes of operands and outputs are permuted
    together, and how the operator is written in another order. A `Skip` says why it is in none.

    Args:
        op_types: the operators.
        domain: their domain.

    Raises:
        UsageError: no operator is named, or one has such a rule already.
    """
    if not op_types or not all(isinstance(op_type, str) for op_type in op_types):
        raise UsageError(f"layout_rule takes names of operators, not {op_types!r}")

    def register(rule: AnyRule) -> AnyRule:
        for op_type in op_types:
            known = RULES.get(domain, {}).get(op_type) or REGISTERED.get((domain, op_type), rule)
            if known is not rule:
                name = f"{domain}::{op_type}" if domain else op_type
                raise UsageError(f"there is a layout rule for {name} already")
        REGISTERED.update(((domain, op_type), rule) for op_type in op_types)
        return rule

    return register


def propagation_of(node: Node) -> Propagation | Skip:
    """Return how permutations propagate through a node, or why none does."""
    rule = RULES.get(node.domain, {}).get(node.op_type)
    model = node.owner.model
    if model.functions and model.function(*node.callee) is not None:
        # A function may compute anything; a registered rule speaks for the operator by its name.
        rule = None
    rule = rule or REGISTERED.get(node.callee[:2])
    if rule is None:
        return FIXED
    if not node.domain and node.schema is None and node.op_type not in _OF_ANY_OPSET:
        return Skip("its opset has no such operator")
    if node.has_references:
        return Skip("{}", node.parameter_reason)
    if node.is_pinned:
        return Skip("training info or an annotation names its output")
    if None in node.outputs:
        return Skip("an output is absent")
    try:
        return rule(node)
    except NoEquivalentForm as error:
        return Skip("{}", str(error))
