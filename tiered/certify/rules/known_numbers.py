"""What operators make of known numbers exactly: integers, and floats that are correctly rounded.

All else with constant operands is computed by onnxruntime (`constants-by-runtime`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tiered.certify.domains.terms import Array, kind_of
from tiered.certify.evaluation.call import NoRule

Numbers = Callable[..., Any]


def _divided(x: Array, y: Array) -> Any:
    if kind_of(x.dtype) != "integer":
        return x / y
    if (y == 0).any():
        raise NoRule  # an error is a function of the operands, too
    # Towards zero; the least integer has no absolute value.
    below, rest = np.floor_divide(x, y), np.remainder(x, y)
    return (below + ((rest != 0) & ((x < 0) != (y < 0)))).astype(x.dtype)


def _remainder(x: Array, y: Array) -> Any:
    if (y == 0).any():
        raise NoRule
    return np.mod(x, y)


EXACT: Final[dict[str, Numbers]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseNot": np.invert,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Ceil": np.ceil,
    "Div": _divided,
    "Equal": np.equal,
    "Floor": np.floor,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "IsNaN": np.isnan,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Mod": _remainder,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Where": np.where,
    "Xor": np.logical_xor,
}
"""Elementwise operators; of floats only those that IEEE 754 rounds correctly."""

REDUCED: Final[dict[str, Numbers]] = {
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
}
"""Reductions of integers."""


def computed(op: str, numbers: list[Array], dtype: np.dtype[Any]) -> Array | None:
    """Return what an elementwise operator makes of numbers; None if it has no exact rule here."""
    rule = EXACT.get(op)
    if rule is None:
        return None
    if op == "Mod" and kind_of(numbers[0].dtype) != "integer":
        return None
    if op in ("Ceil", "Floor", "Sqrt", "IsNaN") and numbers[0].dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        return np.asarray(rule(*numbers)).astype(dtype, copy=False)


def cast(numbers: Array, dtype: np.dtype[Any]) -> Array | None:
    """Return numbers in another dtype where that is exact or rounds to nearest; else None."""
    kinds = kind_of(numbers.dtype), kind_of(dtype)
    if "string" in kinds or "complex" in kinds:
        return None
    if kinds[0] == "float" and kinds[1] == "integer":
        # Out of range, runtimes differ.
        wide = numbers.astype(np.float64)
        if dtype.kind not in "iu" or not np.isfinite(wide).all():
            return None
        limits = np.iinfo(dtype)
        if wide.size and (wide.min() < limits.min or wide.max() >= float(limits.max)):
            return None
    if numbers.dtype == np.float64 and dtype.itemsize == 2 and dtype.kind == "f":
        return None  # onnxruntime rounds to 32 bits first
    if dtype.kind not in "fiub" or numbers.dtype.kind not in "fiub":
        return None
    with np.errstate(all="ignore"):
        return numbers.astype(dtype)
