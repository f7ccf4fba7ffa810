"""Op(x, neutral element)  =>  x: x * 1, x / 1, x - 0, x + (-0.0), x and True, x ** 1, ..."""

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tiered import (
    Constant,
    DataType,
    Graph,
    Node,
    Skip,
    Value,
    broadcasts_into,
    const,
    op,
    rewrite,
    var,
)

Array = np.ndarray[Any, Any]

_NEUTRAL: Final[Mapping[str, Callable[[Array], Array]]] = {
    # -0.0 + 0.0 is +0.0, and so is -0.0 - (-0.0).
    "Add": lambda unit: (unit == 0) & (np.signbit(unit) | (unit.dtype.kind in "iu")),
    "Sub": lambda unit: (unit == 0) & ~np.signbit(unit),
    "And": lambda unit: unit,
    "BitwiseAnd": lambda unit: ~unit == 0,
    **dict.fromkeys(("Div", "Mul", "Pow"), lambda unit: unit == 1),
    **dict.fromkeys(("BitShift", "BitwiseOr", "BitwiseXor", "Or", "Xor"), lambda unit: unit == 0),
}

_KINDS: Final = sorted(_NEUTRAL)

_pattern = functools.reduce(
    operator.or_, (getattr(op, kind)(var.x, const(name="unit"), attrs="ignored") for kind in _KINDS)
)


@rewrite(_pattern, opt_level=2)
def eliminate_nop_arithmetic(
    graph: Graph, x: Value, unit: Constant, node: Node, *, allow_signed_zero: bool = False
) -> Value | Skip:
    """Drop an operator that changes no bit of x, or replace it by an Expand if it adds elements.

    Args:
        allow_signed_zero: also drop x + 0.0 and x - (-0.0), which change the sign of a zero.
    """
    if not _is_neutral(node.op_type, unit.const, allow_signed_zero):
        return Skip("the constant is not neutral")
    if node.op_type == "Pow" and x.dtype in (None, DataType.INT64):
        return Skip("Pow rounds 64-bit integers to floats")
    if broadcasts_into(unit.tensor.shape, x.shape):
        return x
    if x.shape is None or node.output.static_shape is None:
        return Skip("the constant may make x larger")
    return graph.op.Expand(x, np.array(node.output.static_shape, np.int64))


def _is_neutral(op_type: str, unit: Array, allow_signed_zero: bool) -> bool:
    if allow_signed_zero and op_type in ("Add", "Sub"):
        return not unit.any()
    # The first element decides for most constants, and some constants are large.
    is_neutral = _NEUTRAL[op_type]
    if unit.size and not is_neutral(unit.flat[0]):
        return False
    return bool(is_neutral(unit).all())
