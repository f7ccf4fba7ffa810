"""Elementwise operators on bits: what IEEE 754 grants is an axiom, all else is hashed as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.call import Call, Results
from tiered.certify.rules import numbers as exact_numbers
from tiered.certify.terms import (
    Array,
    Seed,
    are_equal,
    magnitudes,
    mix,
    negated,
    ordered,
    seed_of,
)
from tiered.certify.values import Tensor, Unproved, class_of, holds, numpy_dtype
from tiered.graph.core.dtypes import DataType

Rule = Callable[[Call], Results]
BOOL: Final = int(onnx.TensorProto.BOOL)
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
_TESTS: Final = frozenset(
    ("And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not",
     "Or", "Xor")
)  # fmt: skip


def seed_for(call: Call, *more: object) -> Seed:
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


def broadcast(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Return the common shape of operands.

    Raises:
        Unproved: there is none.
    """
    try:
        return np.broadcast_shapes(*(x.shape for x in tensors))
    except ValueError as error:
        raise Unproved("operands do not broadcast") from error


def dtype_of_result(call: Call, tensors: Sequence[Tensor]) -> int:
    """Return the dtype of an elementwise operator's result."""
    if call.op in _TESTS:
        return BOOL
    return tensors[1].dtype if call.op == "Where" else tensors[0].dtype


def elementwise(call: Call, make: Callable[..., Array] | None = None) -> Results:
    """Hash the operands at each place, or make the terms of a function of theirs."""
    tensors = [x for x in call.inputs if x is not None]
    shape, dtype = broadcast(tensors), dtype_of_result(call, tensors)
    numbers = [x.known for x in tensors if x.known is not None]
    if len(numbers) == len(tensors):
        return [known(call, numbers, dtype)]
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

    return [call.made(dtype, shape, all_terms)]


def known(call: Call, numbers: list[Array], dtype: int) -> Tensor:
    """Return what an operator makes of constants."""
    found = None
    if not call.get("fmod", 0):
        found = exact_numbers.computed(call.op, numbers, numpy_dtype(dtype))
    if found is None:
        from tiered.certify.constants import run_node

        (result,) = run_node(call)
        assert result is not None
        return result
    return call.constant(found, dtype)


def _is(x: Tensor, number: float) -> Array | bool:
    """Return where a tensor is known to be a number, of that sign if it is zero."""
    if x.known is None:
        return False
    found = np.asarray(x.known == np.asarray(number, x.known.dtype))
    if number == 0 and class_of(x.dtype) == "float":
        found &= np.signbit(x.known) == np.signbit(number)
    return found


def _kept(call: Call, axiom: str, where: Array | bool, kept: Array, made: Array) -> Array:
    """Return some terms in the place of others, where an axiom says so."""
    if not np.any(where):
        return made
    call.axioms.add(axiom)
    return np.where(where, kept, made)


def add(call: Call) -> Results:
    return _sum(call, call.operand(0), call.operand(1), is_negated=False)


def sub(call: Call) -> Results:
    if (
        class_of(call.operand(0).dtype) == "integer"
        and numpy_dtype(call.operand(0).dtype).kind == "u"
    ):
        return elementwise(call)
    call.axioms.add("sub-adds-negative")
    return _sum(call, call.operand(0), call.operand(1), is_negated=True)


def _sum(call: Call, x: Tensor, y: Tensor, *, is_negated: bool) -> Results:
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

    return elementwise(call, make)


def mul(call: Call) -> Results:
    x, y = call.operand(0), call.operand(1)
    return elementwise(call, lambda first, second: product(call, x, y, first, second))


def product(call: Call, x: Tensor, y: Tensor, first: Array, second: Array) -> Array:
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


def div(call: Call) -> Results:
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


def neg(call: Call) -> Results:
    if call.operand(0).dtype not in _SIGNED:
        return elementwise(call)
    call.axioms.add("neg-neg")
    return elementwise(call, negated)


def not_(call: Call) -> Results:
    call.axioms.add("not-not")
    return elementwise(call, _not)


def _not(terms: Array) -> Array:
    """Return the terms of Not: twice of it gives the same ones again."""
    made, (true, false) = negated(terms), _TRUTHS
    made = np.where(are_equal(terms, true), false, made)
    return np.where(are_equal(terms, false), true, made)


def _truths() -> tuple[Array, Array]:
    from tiered.certify.terms import constants

    return constants(np.asarray(True)), constants(np.asarray(False))


_TRUTHS: Final = _truths()


def abs_(call: Call) -> Results:
    seed = seed_for(call, call.operand(0).dtype)
    return elementwise(call, lambda terms: mix(seed, magnitudes(terms)[0]))


def test(call: Call) -> Results:
    """Less, Greater and their like, as Less and LessOrEqual of numbers of a class."""
    x = call.operand(0)
    op = {"Greater": "Less", "GreaterOrEqual": "LessOrEqual"}.get(call.op, call.op)
    seed = seed_of(op, class_of(x.dtype))
    is_swapped = op != call.op
    if is_swapped:
        call.axioms.add("less-is-greater")
    return elementwise(call, lambda a, b: mix(seed, b, a) if is_swapped else mix(seed, a, b))


def equal(call: Call) -> Results:
    seed = seed_of("Equal", class_of(call.operand(0).dtype))
    call.axioms.add("equal-commutes")
    return elementwise(call, lambda a, b: mix(seed, *ordered(a, b)))


def logic(call: Call) -> Results:
    x, y, op = call.operand(0), call.operand(1), call.op
    call.axioms.add("logic-commutes")
    seed = seed_of(op)

    def make(a: Array, b: Array) -> Array:
        made = mix(seed, *ordered(a, b))
        if op == "Xor":
            return made
        made = np.where(are_equal(*np.broadcast_arrays(a, b)), a, made)
        for one, other in ((x, b), (y, a)):
            if one.known is not None:
                held = one.known if op == "And" else ~one.known
                decided = _TRUTHS[1] if op == "And" else _TRUTHS[0]
                made = np.where(held, other, np.broadcast_to(decided, made.shape))
        return made

    return elementwise(call, make)


def extremum(call: Call) -> Results:
    """Max and Min: the same for any order of operands, and for equal ones."""
    tensors = [x for x in call.inputs if x is not None]
    is_float = class_of(tensors[0].dtype) == "float"
    if len(tensors) == 1:
        return [tensors[0]]
    call.axioms.add("extremum-commutes" if is_float else "extremum-of-integers")
    seed = seed_of(call.op, class_of(tensors[0].dtype))
    return elementwise(call, lambda *terms: _folded(seed, terms))


def _folded(seed: Seed, terms: Sequence[Array]) -> Array:
    made = terms[0]
    for term in terms[1:]:
        one, other = np.broadcast_arrays(made, term)
        made = np.where(are_equal(one, other), one, mix(seed, *ordered(one, other)))
    return made


def clip(call: Call) -> Results:
    """Clip as Min of Max, where both bounds are there."""
    x = call.operand(0)
    bounds = [_bound(call, x, name, index) for index, name in enumerate(("min", "max"), 1)]
    if all(b is None for b in bounds):
        return [x]
    call.axioms.add("clip-is-min-of-max")
    kind = class_of(x.dtype)
    present = [b for b in bounds if b is not None]
    if x.known is not None and all(b.known is not None for b in present):
        from tiered.certify.constants import run_node

        return run_node(call)

    def make() -> Array:
        made = x.terms
        for name, bound in zip(("Max", "Min"), bounds, strict=True):
            if bound is not None:
                made = _folded(seed_of(name, kind), (made, bound.terms))
        return made

    return [call.made(x.dtype, x.shape, make)]


def _bound(call: Call, x: Tensor, name: str, index: int) -> Tensor | None:
    if name in call.attributes:
        return call.constant(np.asarray(call.attributes[name], numpy_dtype(x.dtype)), x.dtype)
    return call.operand(index) if call.has(index) else None


def where(call: Call) -> Results:
    condition, x, y = call.operand(0), call.operand(1), call.operand(2)
    seed = seed_of("Where")

    def make(chosen: Array, a: Array, b: Array) -> Array:
        if condition.known is not None:
            a, b, mask = np.broadcast_arrays(a, b, condition.known)
            return np.where(mask, a, b)
        call.axioms.add("where-same")
        chosen, a, b = np.broadcast_arrays(chosen, a, b)
        return np.where(are_equal(a, b), a, mix(seed, chosen, a, b))

    found = elementwise(call, make)
    result = found[0]
    if result is not None and x.exact == y.exact:
        result.exact = x.exact
    return found


def cast(call: Call) -> Results:
    x = call.operand(0)
    to = call.operand(1).dtype if call.op == "CastLike" else call.attributes["to"]
    return [cast_to(call, x, to)]


def cast_to(call: Call, x: Tensor, to: int) -> Tensor:
    """Return a tensor in another dtype; a dtype that has all its numbers changes no term."""
    if to == x.dtype:
        return x
    if x.known is not None:
        found = exact_numbers.cast(x.known, numpy_dtype(to))
        if found is None:
            from tiered.certify.constants import run_node

            (result,) = run_node(call)
            assert result is not None
            return result
        return call.constant(found, to)
    if holds(to, x.exact):
        call.axioms.add("cast-wider")
        return call.made(to, x.shape, lambda: x.terms, exact=x.exact)
    kinds = class_of(x.dtype), class_of(to)
    # A bool is 0 or 1 in every dtype of a class.
    target = kinds[1] if kinds[0] == "bool" or kinds[1] == "bool" else to
    seed = seed_of("Cast", kinds[0], target, call.get("saturate", 1), call.get("round_mode", ""))
    return call.made(to, x.shape, lambda: mix(seed, x.terms))


def reciprocal(call: Call) -> Results:
    x = call.operand(0)
    one = call.constant(np.ones((), numpy_dtype(x.dtype)), x.dtype)
    if x.known is not None:
        return elementwise(call)

    if x.dtype not in _SIGNED:
        return elementwise(call)

    def make(terms: Array) -> Array:
        a, minus = magnitudes(terms)
        return negated(mix(seed_of("Div", x.dtype), one.terms, a), minus)

    return elementwise(call, make)


def sum_(call: Call) -> Results:
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


_PLAIN: Final = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd", "BitwiseNot",
    "BitwiseOr", "BitwiseXor", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu",
    "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mean", "Mish", "Mod",
    "PRelu", "Pow", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
    "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
)  # fmt: skip

ELEMENTWISE: Final[dict[str, Rule]] = {
    **dict.fromkeys(_PLAIN, elementwise),
    "Abs": abs_,
    "Add": add,
    "And": logic,
    "Cast": cast,
    "CastLike": cast,
    "Clip": clip,
    "Div": div,
    "Equal": equal,
    "Greater": test,
    "GreaterOrEqual": test,
    "Less": test,
    "LessOrEqual": test,
    "Max": extremum,
    "Min": extremum,
    "Mul": mul,
    "Neg": neg,
    "Not": not_,
    "Or": logic,
    "Reciprocal": reciprocal,
    "Sub": sub,
    "Sum": sum_,
    "Where": where,
    "Xor": logic,
}
"""The rules on bits."""
