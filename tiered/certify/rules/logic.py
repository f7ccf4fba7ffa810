"""Comparisons, logic and choices on bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tiered.certify.domains.terms import (
    Array,
    are_equal,
    constants,
    leaf,
    magnitudes,
    mix,
    negated,
    ordered,
    seed_of,
)
from tiered.certify.evaluation.call import EvaluatedCall, Results, axis_of
from tiered.certify.evaluation.constants import run_node
from tiered.certify.evaluation.forms import ChoiceForm
from tiered.certify.evaluation.values import CheckedTensor, class_of
from tiered.certify.rules.bit_elementwise import BOOL, elementwise

Rule = Callable[[EvaluatedCall], Results]


def not_(call: EvaluatedCall) -> Results:
    call.axioms.add("not-not")
    return elementwise(call, _not)


def _not(terms: Array) -> Array:
    """Return the terms of Not: twice of it gives the same ones again."""
    made, (true, false) = negated(terms), _TRUTHS
    made = np.where(are_equal(terms, true), false, made)
    return np.where(are_equal(terms, false), true, made)


def _truths() -> tuple[Array, Array]:
    return constants(np.asarray(True)), constants(np.asarray(False))


_TRUTHS: Final = _truths()


def test(call: EvaluatedCall) -> Results:
    """Less, Greater and their like, as Less and LessOrEqual of numbers of a class."""
    x = call.operand(0)
    op = {"Greater": "Less", "GreaterOrEqual": "LessOrEqual"}.get(call.op, call.op)
    kind = class_of(x.dtype)
    is_swapped = op != call.op
    if is_swapped:
        call.axioms.add("less-is-greater")

    def make(a: Array, b: Array) -> Array:
        a, b = (b, a) if is_swapped else (a, b)
        less = mix(seed_of("Less", kind), a, b)
        if op == "Less":
            return less
        call.axioms.add("less-or-equal")
        same = mix(seed_of("Equal", kind), *ordered(a, b))
        return mix(seed_of("Or"), *ordered(less, same))

    return elementwise(call, make)


def equal(call: EvaluatedCall) -> Results:
    seed = seed_of("Equal", class_of(call.operand(0).dtype))
    call.axioms.add("equal-commutes")
    return elementwise(call, lambda a, b: mix(seed, *ordered(a, b)))


def logic(call: EvaluatedCall) -> Results:
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


def where(call: EvaluatedCall) -> Results:
    condition, x, y = call.operand(0), call.operand(1), call.operand(2)

    def make(chosen: Array, a: Array, b: Array) -> Array:
        if condition.known is not None:
            a, b, mask = np.broadcast_arrays(a, b, condition.known)
            return np.where(mask, a, b)
        call.axioms.add("where-same")
        return chosen_terms(chosen, a, b)

    (result,) = elementwise(call, make)
    if x.exact == y.exact:
        result.exact = x.exact
    if condition.known is None:
        result.form = ChoiceForm(condition, x, y)
    return [result]


def chosen_terms(chosen: Array, a: Array, b: Array) -> Array:
    """Return the terms of a choice: of equal ones it is none, and Not changes their places."""
    chosen, a, b = np.broadcast_arrays(chosen, a, b)
    plain, is_not = magnitudes(chosen)
    first, second = np.where(is_not, b, a), np.where(is_not, a, b)
    return np.where(are_equal(a, b), a, mix(seed_of("Where"), plain, first, second))


def one_hot(call: EvaluatedCall) -> Results:
    """A choice between two values: whether an index is that of a place."""
    indices, values = call.operand(0), call.operand(2)
    if indices.known is not None and values.known is not None:
        return run_node(call)
    depth = int(call.operand(1).numbers("the depth of OneHot").ravel()[0])
    axis = axis_of(call.get("axis", -1), indices.rank + 1)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    sizes = [depth if at == axis else 1 for at in range(len(shape))]
    places = leaf(seed_of("place of OneHot", depth), (depth,))

    def condition() -> Array:
        terms = np.expand_dims(indices.terms, axis)
        return mix(seed_of("OneHot"), terms, places.reshape(sizes))

    chosen = call.made(BOOL, shape, condition)
    off, on = (_row(call, values, at) for at in range(2))
    made = call.made(values.dtype, shape, lambda: chosen_terms(chosen.terms, on.terms, off.terms))
    made.form = ChoiceForm(chosen, on, off)
    return [made]


def _row(call: EvaluatedCall, x: CheckedTensor, at: int) -> CheckedTensor:
    return call.moved(x, lambda a: a[at], x.shape[1:])


LOGIC: Final[dict[str, Rule]] = {
    "And": logic,
    "Equal": equal,
    "Greater": test,
    "GreaterOrEqual": test,
    "Less": test,
    "LessOrEqual": test,
    "Not": not_,
    "OneHot": one_hot,
    "Or": logic,
    "Where": where,
    "Xor": logic,
}
