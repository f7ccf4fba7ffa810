"""Sums, products, powers and signs on bits: what IEEE 754 grants is an axiom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tiered.certify.domains.terms import Array, magnitudes, mix, negated, ordered, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, Results
from tiered.certify.evaluation.forms import Negative, WithoutSign
from tiered.certify.evaluation.values import CheckedTensor, class_of, numpy_dtype
from tiered.certify.rules.bit_elementwise import broadcast, elementwise, seed_for
from tiered.graph.core.dtypes import DataType

Rule = Callable[[EvaluatedCall], Results]

_SIGNED: Final = frozenset(
    int(dtype)
    for dtype in (
        DataType.FLOAT16,
        DataType.BFLOAT16,
        DataType.FLOAT,
        DataType.DOUBLE,
        DataType.INT64,
    )
)
"""The dtypes in which a negative has the term of its number but for the sign.

Of integers only the widest: -(-128) is -128 in int8, and 128 after a Cast.
"""
_HALVES: Final = (int(DataType.FLOAT16), int(DataType.BFLOAT16))


def _is(x: CheckedTensor, number: float) -> Array | bool:
    """Return where a tensor is known to be a number, of that sign if it is zero."""
    if x.known is None:
        return False
    found = np.asarray(x.known == np.asarray(number, x.known.dtype))
    if number == 0 and class_of(x.dtype) == "float":
        found &= np.signbit(x.known) == np.signbit(number)
    return found


def _kept(call: EvaluatedCall, axiom: str, where: Array | bool, kept: Array, made: Array) -> Array:
    """Return some terms in the place of others, where an axiom says so."""
    if not np.any(where):
        return made
    call.axioms.add(axiom)
    return np.where(where, kept, made)


def add(call: EvaluatedCall) -> Results:
    return _sum(call, call.operand(0), call.operand(1), is_negated=False)


def sub(call: EvaluatedCall) -> Results:
    if numpy_dtype(call.operand(0).dtype).kind == "u":
        return elementwise(call)
    call.axioms.add("sub-adds-negative")
    return _sum(call, call.operand(0), call.operand(1), is_negated=True)


def _sum(call: EvaluatedCall, x: CheckedTensor, y: CheckedTensor, *, is_negated: bool) -> Results:
    is_float = class_of(x.dtype) == "float"
    zero = -0.0 if is_float else 0
    seed = seed_of("Add", x.dtype)

    def make(first: Array, second: Array) -> Array:
        second = negated(second) if is_negated else second
        call.axioms.add("add-commutes")
        made = mix(seed, *ordered(first, second))
        made = _kept(call, "add-negative-zero", _is(x, zero), second, made)
        there = _is(y, 0.0 if is_float and is_negated else zero)
        return _kept(call, "add-negative-zero", there, first, made)

    (found,) = elementwise(call, make)
    for one, other, other_zero in ((x, y, -0.0 if is_negated else 0.0), (y, x, 0.0)):
        # The sum is the operand but for the signs of its zeros.
        is_zero = is_float and not (is_negated and one is y) and np.all(_is(other, other_zero))
        if is_zero and found.shape == one.shape and one.known is None:
            found.form = WithoutSign(one)
    return [found]


def mul(call: EvaluatedCall) -> Results:
    x, y = call.operand(0), call.operand(1)
    for one, other in ((x, y), (y, x)):
        if isinstance(one.form, Negative) and other.known is not None:
            call.axioms.add("sign-of-product")
            with np.errstate(over="ignore"):
                x, y = one.form.base, call.constant(np.negative(other.known), other.dtype)
            call.inputs = [x, y]
            break
    return elementwise(call, lambda first, second: product(call, x, y, first, second))


def product(
    call: EvaluatedCall, x: CheckedTensor, y: CheckedTensor, first: Array, second: Array
) -> Array:
    """Return the terms of a product; its sign is a bit of them."""
    seed, has_sign = seed_of("Mul", x.dtype), x.dtype in _SIGNED
    call.axioms.add("mul-commutes")
    if has_sign:
        call.axioms.add("sign-of-product")
        (a, minus_a), (b, minus_b) = magnitudes(first), magnitudes(second)
        made = negated(mix(seed, *ordered(a, b)), minus_a ^ minus_b)
    else:
        made = mix(seed, *ordered(first, second))
    for one, kept in ((x, second), (y, first)):
        made = _kept(call, "mul-one", _is(one, 1), kept, made)
        if has_sign:
            made = _kept(call, "mul-one", _is(one, -1), negated(kept), made)
    return made


def div(call: EvaluatedCall) -> Results:
    x, y = call.operand(0), call.operand(1)
    is_float = class_of(x.dtype) == "float"

    def make(first: Array, second: Array) -> Array:
        seed = seed_of("Div", x.dtype)
        if x.dtype not in _SIGNED or not is_float:
            return _kept(call, "mul-one", _is(y, 1), first, mix(seed, first, second))
        call.axioms.add("sign-of-product")
        (a, minus_a), (b, minus_b) = magnitudes(first), magnitudes(second)
        made = negated(mix(seed, a, b), minus_a ^ minus_b)
        if y.known is None:
            return made
        inverse, is_exact = _inverse(y.known)
        if not is_exact.any():
            return made
        call.axioms.add("div-power-of-two")
        other = call.constant(inverse, y.dtype)
        return np.where(is_exact, product(call, x, other, first, other.terms), made)

    return elementwise(call, make)


def _inverse(numbers: Array) -> tuple[Array, Any]:
    """Return reciprocals, and where they are exact: those of powers of two."""
    with np.errstate(all="ignore"):
        inverse = (np.ones((), numbers.dtype) / numbers).astype(numbers.dtype)
        mantissa, _ = np.frexp(numbers.astype(np.float64))
        wide = inverse.astype(np.float64)
        is_exact = (np.abs(mantissa) == 0.5) & np.isfinite(wide) & (wide != 0)
        is_exact &= wide * numbers.astype(np.float64) == 1
    return inverse, is_exact


def neg(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    if x.dtype not in _SIGNED:
        (made,) = elementwise(call)
        if x.known is None and numpy_dtype(x.dtype).kind == "i":
            made.form = Negative(x)
        return [made]
    call.axioms.add("neg-neg")
    return elementwise(call, negated)


def abs_(call: EvaluatedCall) -> Results:
    seed = seed_for(call, call.operand(0).dtype)
    return elementwise(call, lambda terms: mix(seed, magnitudes(terms)[0]))


def power(call: EvaluatedCall) -> Results:
    """A power of 1, 2 or 3 is a product, as onnxruntime computes it."""
    x, exponent = call.operand(0), call.operand(1).known
    times = None if exponent is None or exponent.size != 1 else float(exponent.reshape(()))
    most = 2 if x.dtype in _HALVES else 3
    if times not in (1, 2, 3) or times > most or x.known is not None:
        return elementwise(call)
    call.axioms.add("pow-is-product")
    shape = broadcast([x, call.operand(1)])

    def make() -> Array:
        made = x.terms
        for _ in range(int(times) - 1):
            made = product(call, x, x, made, x.terms)
        return made.reshape(shape)

    return [call.made(x.dtype, shape, make)]


def reciprocal(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    one = call.constant(np.ones((), numpy_dtype(x.dtype)), x.dtype)
    if x.dtype not in _SIGNED:
        return elementwise(call)

    def make(terms: Array) -> Array:
        a, minus = magnitudes(terms)
        return negated(mix(seed_of("Div", x.dtype), one.terms, a), minus)

    return elementwise(call, make)


def sum_(call: EvaluatedCall) -> Results:
    """Sum of several operands, from the left; of one it is that."""
    tensors = [x for x in call.inputs if x is not None]
    if len(tensors) == 1:
        return [tensors[0]]
    seed = seed_of("Add", tensors[0].dtype)
    call.axioms.add("add-commutes")

    def make(*terms: Array) -> Array:
        made = terms[0]
        for term in terms[1:]:
            made = mix(seed, *ordered(made, term))
        return made

    return elementwise(call, make)


ARITHMETIC: Final[dict[str, Rule]] = {
    "Abs": abs_,
    "Add": add,
    "Div": div,
    "Mul": mul,
    "Neg": neg,
    "Pow": power,
    "Reciprocal": reciprocal,
    "Sub": sub,
    "Sum": sum_,
}
