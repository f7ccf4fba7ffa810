"""Max(x) of integers  =>  Cast(Max(Cast(x))) by way of float, and other operators"""

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var
from tiered.graph.queries.op_traits import ARG_REDUCTIONS, CLAMPS, COMPARISONS, SELECTS_EXTREMES
from tiered.rewriter.idioms.comparison import is_integer

_MOST: Final = 1 << 24
"""Up to here float holds every integer."""

_SHORT: Final = 2
"""The bytes of integers that float holds."""

_SELECTING: Final = frozenset(
    {*ARG_REDUCTIONS, *CLAMPS, *COMPARISONS, "Relu", "Sign", "TopK"}
    | (SELECTS_EXTREMES - {"GlobalMaxPool"})  # is of floats only
)
"""Operators whose results are operands, indices, or at most 1: they do not leave the range."""


@rewrite(
    (op.Abs | op.ArgMax | op.ArgMin | op.MaxPool | op.Neg | op.Relu | op.Sign)(var.x, attrs=...)
    | (
        op.Add | op.Clip | op.CumSum | op.Div | op.Equal | op.Greater | op.GreaterOrEqual | op.Less
        | op.LessOrEqual | op.MatMul | op.Max | op.Min | op.Mul | op.Pow | op.ReduceMax
        | op.ReduceMin | op.ReduceProd | op.ReduceSum | op.Sub | op.Sum | op.TopK
    )(var.x, ..., attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics_option="numerics",
)  # fmt: skip
def legalize_float_ops(
    graph: Graph, node: Node, x: Value, *, numerics: Literal["exact", "approximate"] = "exact"
) -> Sequence[Value | None] | Skip:
    """Compute in float what the target has a float kernel for only, and convert the result back.

    Exact where all operands are integers that float holds, and the operator only selects: integers
    of 8 or 16 bits, constants up to 2**24, and integers that were converted from such.

    Args:
        numerics: `approximate` takes all integers, results and operands beyond 2**24 are rounded,
            operators that compute and overflow otherwise, and doubles.
    """
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    is_double = x.dtype == DataType.DOUBLE
    if not is_double and not is_integer(x.dtype):
        return Skip("x is neither integer nor double")
    places = _operands(node)
    operands = [node.inputs[at] for at in places]
    if numerics == "exact":
        if is_double:
            return Skip("float has fewer digits than double")
        if node.op_type not in _SELECTING:
            return Skip("{} may leave the range of its operands", node.op_type)
        if not all(value is None or _fits(value) for value in operands):
            return Skip("an operand may exceed 2**24")
    inputs, wide = list(node.inputs), dict[Value, Value]()
    for at in places:
        value = inputs[at]
        if value is not None and value not in wide:
            wide[value] = graph.op.Cast(value, to=int(DataType.FLOAT))
        inputs[at] = None if value is None else wide[value]
    made: Any = graph.op.like(node, *inputs, outputs=len(node.outputs))
    results: list[Value | None] = list(made) if len(node.outputs) > 1 else [made]
    for at, new in enumerate(results):
        if new is not None and _is_of(node, at):
            results[at] = graph.op.Cast(new, to=int(x.dtype))
    return results


def _operands(node: Node) -> list[int]:
    """Return the places of the operands of the first one's type."""
    assert node.schema is not None
    formal = list(node.schema.inputs)
    types = [formal[min(at, len(formal) - 1)].type_str for at in range(len(node.inputs))]
    return [at for at, name in enumerate(types) if name == types[0]]


def _is_of(node: Node, at: int) -> bool:
    """Return whether an output has the type of the first operand."""
    assert node.schema is not None
    return bool(node.schema.outputs[at].type_str == node.schema.inputs[0].type_str)


def _fits(value: Value) -> bool:
    """Return whether float holds all integers that a value may be."""
    if value.dtype is None:
        return False
    if DataType(value.dtype).numpy.itemsize <= _SHORT:
        return True
    if value.const is not None:
        return bool((np.abs(value.const.astype(np.float64)) <= _MOST).all())
    cast = value.producer
    if cast is None or not cast.is_op("Cast"):
        return False
    return is_integer(cast.given(0).dtype) and _fits(cast.given(0))
