"""If(c) {a} {b}  =>  Where(c, a, b)"""

from typing import Final

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var
from tiered.support.amounts import counted

_NEVER_FAIL: Final = frozenset({
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "Constant", "Conv", "Cos", "Elu",
    "Equal", "Erf", "Exp", "Floor", "Gelu", "Gemm", "Greater", "GreaterOrEqual", "HardSigmoid",
    "HardSwish", "Identity", "IsInf", "IsNaN", "LayerNormalization", "LeakyRelu", "Less",
    "LessOrEqual", "Log", "LogSoftmax", "MatMul", "Max", "Mean", "Min", "Mul", "Neg", "Not", "Or",
    "PRelu", "Pow", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Relu",
    "Round", "Sigmoid", "Sign", "Sin", "Softmax", "Softplus", "Sqrt", "Squeeze", "Sub", "Sum",
    "Tan", "Tanh", "Transpose", "Unsqueeze", "Where", "Xor",
})  # fmt: skip
"""Operators that compute something for all values of operands of the right types."""

_SELECTED: Final = frozenset((
    DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.INT8, DataType.INT32,
    DataType.INT64, DataType.UINT8, DataType.UINT32, DataType.BOOL,
))  # fmt: skip
"""The dtypes with a Where on onnxruntime 1.31, and bool, which And and Or select."""


@rewrite(
    op.If(var.c, then_branch=..., else_branch=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def replace_if_with_where(
    graph: Graph, node: Node, c: Value, *, max_nodes: int = 1000
) -> list[Value] | Skip:
    """Compute both branches, and select; of bool by And and Or, as onnxruntime has no such Where.

    Exact by the standard; onnxruntime's Where makes 0.0 of a -0.0 in its first branch. An operator
    that may fail on the values of the branch that is not taken, as Gather does on an index, stays.

    Args:
        max_nodes: the most nodes of both branches.
    """
    branches = {body.attribute: body for body in node.bodies}
    inner = [each for body in node.bodies for each in body.nodes]
    if len(inner) > max_nodes:
        return Skip("the branches have {}", counted(len(inner), "node"))
    for each in inner:
        if each.domain or each.bodies or each.op_type not in _NEVER_FAIL:
            return Skip("a branch has {}, which may fail or nests", each.op_type)
    if c.shape is None or any(dim != 1 for dim in c.shape):
        return Skip("the condition is not known to be one element")
    pairs = list(zip(branches["then_branch"].outputs, branches["else_branch"].outputs, strict=True))
    for yes, no in pairs:
        if yes.dtype is None or yes.dtype != no.dtype or yes.dtype == DataType.STRING:
            return Skip("the dtypes of the branches differ or are not known")
        if yes.dtype not in _SELECTED:
            return Skip("runtimes have no Where of {}", DataType(yes.dtype).name.lower())
        if yes.shape is None or yes.shape != no.shape or None in yes.shape:
            return Skip("the shapes of the branches differ or are not known")
        if yes.rank == 0 and c.rank:
            return Skip("the result has a lower rank than the condition")
    outside: dict[Value, Value | None] = {}
    for body in node.bodies:
        for value in body.initializers:
            assert value.tensor is not None
            outside[value] = graph.constant(value.tensor, value.name)
        graph.copy_nodes(body.topological_order(), outside, prefix=node.name or "If")
    return [_selected(graph, c, outside.get(yes, yes), outside.get(no, no)) for yes, no in pairs]


def _selected(graph: Graph, c: Value, yes: Value | None, no: Value | None) -> Value:
    """Return one of two values; onnxruntime has no Where of bool."""
    ops = graph.op
    if yes is not None and yes.dtype == DataType.BOOL:
        return ops.Or(ops.And(c, yes), ops.And(ops.Not(c), no))
    return ops.Where(c, yes, no)
