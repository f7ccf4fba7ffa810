"""Elementwise operators on bits: what IEEE 754 grants is an axiom, all else is hashed as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.domains.terms import (
    Array,
    Seed,
    mix,
    seed_of,
)
from tiered.certify.evaluation.call import EvaluatedCall, Results
from tiered.certify.evaluation.forms import Fixed, WithoutSign
from tiered.certify.evaluation.values import CheckedTensor, broadcast_of, class_of, numpy_dtype
from tiered.certify.rules import known_numbers as exact_numbers

Rule = Callable[[EvaluatedCall], Results]
BOOL: Final = int(onnx.TensorProto.BOOL)
_TESTS: Final = frozenset(
    ("And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not",
     "Or", "Xor")
)  # fmt: skip
_FIXED: Final = {
    **dict.fromkeys(("Ceil", "Floor", "Round"), frozenset(("Ceil", "Floor", "Round"))),
    **{op: frozenset((op,)) for op in ("Abs", "Sign")},
}
"""Operators after which some change nothing."""
_ERASING: Final = frozenset(("Abs", "Cos", "Cosh", "Exp", "HardSigmoid", "Sigmoid", "Softplus"))
"""Operators that compute the same of zeros of both signs."""


def seed_for(call: EvaluatedCall, *more: object) -> Seed:
    """Return the seed of a node: operator, domain and attributes."""
    held = sorted((name, _frozen(value)) for name, value in call.attributes.items())
    return seed_of(call.node.domain, call.op, *held, *more)


def _frozen(value: Any) -> str:
    if hasattr(value, "SerializeToString"):
        return repr(value.SerializeToString(deterministic=True))
    return (
        repr(list(value))
        if hasattr(value, "__len__") and not isinstance(value, str)
        else repr(value)
    )


def broadcast(tensors: Sequence[CheckedTensor]) -> tuple[int, ...]:
    """Return the common shape of operands.

    Raises:
        Misfit: there is none.
    """
    return broadcast_of([x.shape for x in tensors], "operands")


def dtype_of_result(call: EvaluatedCall, tensors: Sequence[CheckedTensor]) -> int:
    """Return the dtype of an elementwise operator's result."""
    if call.op in _TESTS:
        return BOOL
    return tensors[1].dtype if call.op == "Where" else tensors[0].dtype


def elementwise(
    call: EvaluatedCall, make: Callable[..., Array] | None = None
) -> list[CheckedTensor]:
    """Hash the operands at each place, or make the terms of a function of theirs."""
    tensors = [x for x in call.inputs if x is not None]
    shape, dtype = broadcast(tensors), dtype_of_result(call, tensors)
    numbers = [x.known for x in tensors if x.known is not None]
    if len(numbers) == len(tensors):
        return [known(call, numbers, dtype)]
    held = tensors[0].form
    if isinstance(held, Fixed) and call.op in held.ops:
        call.axioms.add("idempotent")
        return [tensors[0]]
    if isinstance(held, WithoutSign) and call.op in _ERASING:
        call.axioms.add("zero-sign-unread")
        tensors[0] = held.base
    if len(tensors) == 1 and call.op == "Mean":
        return [tensors[0]]
    if make is None:
        present = tuple(x is not None for x in call.inputs)
        seed = seed_for(call, present, dtype, tuple(class_of(x.dtype) for x in tensors))

        def plain(*terms: Array) -> Array:
            return mix(seed, *terms)

        make = plain
    rule = make

    def all_terms() -> Array:
        made = rule(*(x.terms for x in tensors))
        return np.broadcast_to(made, shape)

    made = call.made(dtype, shape, all_terms)
    made.form = Fixed(_FIXED[call.op]) if call.op in _FIXED else None
    return [made]


def known(call: EvaluatedCall, numbers: list[Array], dtype: int) -> CheckedTensor:
    """Return what an operator makes of constants."""
    found = None
    if not call.get("fmod", 0):
        found = exact_numbers.computed(call.op, numbers, numpy_dtype(dtype))
    if found is None:
        from tiered.certify.evaluation.constants import run_node

        (result,) = run_node(call)
        assert result is not None
        return result
    return call.constant(found, dtype)


_PLAIN: Final = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd", "BitwiseNot",
    "BitwiseOr", "BitwiseXor", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu",
    "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mean", "Mish", "Mod",
    "PRelu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
    "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
)  # fmt: skip

PLAIN: Final[dict[str, Rule]] = dict.fromkeys(_PLAIN, elementwise)
"""Operators without laws: their results are functions of their operands."""
