"""Max, Min, Clip and Relu: clamps by numbers compose, and where no zeros meet no order matters.

Of two zeros of different signs a runtime returns the first or the second one. So floats are only
put in order where no tie of zeros can be the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tiered.certify.domains.terms import Array, are_equal, constants, kind_of, mix, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.forms import Clamp, Extremum
from tiered.certify.evaluation.values import CheckedTensor, class_of, numpy_dtype
from tiered.certify.rules.bit_elementwise import elementwise, known
from tiered.graph.core.dtypes import float_info, integer_info

Bounds = tuple[Array, Array]


def clip(call: EvaluatedCall) -> Results:
    """An absent bound of Clip is the furthest finite number, as onnxruntime has it."""
    x = call.operand(0)
    found = [_bound(call, x, name, index) for index, name in enumerate(("min", "max"), 1)]
    if x.known is not None or any(bound is None for bound in found):
        if all(t is None or t.known is not None for t in call.inputs):
            return [known(call, [], x.dtype)]
        return elementwise(call)
    call.axioms.add("clip-keeps-equals")
    low, high = (_wide(bound) for bound in found if bound is not None)
    if np.isnan(low).any() or np.isnan(high).any():
        raise NoRule
    return [clamped(call, x, low, high)]


def _bound(call: EvaluatedCall, x: CheckedTensor, name: str, index: int) -> Array | None:
    """Return a bound as numbers; None if it is not known."""
    dtype = numpy_dtype(x.dtype)
    if name in call.attributes:
        return np.asarray(call.attributes[name], dtype)
    if call.has(index):
        return call.operand(index).known
    limits = float_info(dtype) if class_of(x.dtype) == "float" else integer_info(dtype)
    return np.asarray(limits.min if name == "min" else limits.max, dtype)


def relu(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    if x.known is not None:
        return elementwise(call)
    call.axioms.add("clip-keeps-equals")
    low, high = _none(x.dtype)
    return [clamped(call, x, np.zeros_like(low), high)]


def extremum(call: EvaluatedCall) -> Results:
    """Max and Min: of one tensor and numbers a clamp, in any order where no zeros are tied."""
    tensors = [x for x in call.inputs if x is not None]
    if len(tensors) == 1:
        return [tensors[0]]
    numbers = [x.known for x in tensors if x.known is not None]
    dtype, op = tensors[0].dtype, call.op
    if len(numbers) == len(tensors):
        return [known(call, numbers, dtype)]
    bound = _folded(op, numbers)
    parts, bound = _flat(op, [x for x in tensors if x.known is None], bound)
    if bound is not None and np.isnan(bound).any():
        return _in_order(call, tensors)
    if call.signed_zeros and class_of(dtype) == "float" and not _never_ties(op, parts, bound):
        return _in_order(call, tensors)
    call.axioms.add("extremum-of-integers" if class_of(dtype) == "integer" else "no-zeros-meet")
    if len(parts) == 1 and bound is not None:
        low, high = _none(dtype)
        low, high = (bound, high) if op == "Max" else (low, bound)
        return [clamped(call, parts[0], *np.broadcast_arrays(low, high))]
    return [_unordered(call, op, parts, bound)]


def _flat(
    op: str, parts: Sequence[CheckedTensor], bound: Array | None
) -> tuple[list[CheckedTensor], Array | None]:
    """Return what an extremum is of, without those of the same kind inside, and its bound."""
    flat: dict[object, CheckedTensor] = {}
    for part in parts:
        held = part.form
        if isinstance(held, Extremum) and held.op == op:
            flat.update((id(each), each) for each in held.parts)
            bound = _folded(op, [each for each in (bound, held.bound) if each is not None])
        elif isinstance(held, Clamp) and (own := _own_bound(op, held, part.dtype)) is not None:
            flat[id(held.base)] = held.base
            bound = own if bound is None else _folded(op, [bound, own])
        else:
            flat[id(part)] = part
    return [*flat.values()], bound


def _own_bound(op: str, form: Clamp, dtype: int) -> Array | None:
    """Return the bound of a clamp that is a Max or a Min alone."""
    least, most = _none(dtype)
    if op == "Max":
        return form.low if (form.high == most).all() else None
    return form.high if (form.low == least).all() else None


def _never_ties(op: str, parts: Sequence[CheckedTensor], bound: Array | None) -> bool:
    """Return whether no zero of either sign can be chosen among several."""
    if len(parts) == 1:
        return bound is not None and bool((bound != 0).all())
    return bound is not None and bool(((bound > 0) if op == "Max" else (bound < 0)).all())


def _folded(op: str, numbers: Sequence[Array]) -> Array | None:
    """Return the extremum of numbers; of several zeros any: they are no bound of floats."""
    made: Array | None = None
    for each in map(_wide, numbers):
        made = each if made is None else (np.maximum if op == "Max" else np.minimum)(made, each)
    return made


def _in_order(call: EvaluatedCall, tensors: Sequence[CheckedTensor]) -> Results:
    """Fold the operands from the left; the same one twice is itself."""
    call.inputs = tensors = _chosen(call.op, tensors)
    seed = seed_of(call.op, class_of(tensors[0].dtype))

    def make(*terms: Array) -> Array:
        made = terms[0]
        for term in terms[1:]:
            one, other = np.broadcast_arrays(made, term)
            made = np.where(are_equal(one, other), one, mix(seed, one, other))
        return made

    return elementwise(call, make)


def _chosen(op: str, tensors: Sequence[CheckedTensor]) -> Sequence[CheckedTensor]:
    """Return the operands without numbers that are never chosen, as another one is beyond them."""
    shape = np.broadcast_shapes(*(x.shape for x in tensors))
    beyond = np.greater if op == "Max" else np.less
    kept = [
        x for x in tensors
        if x.known is None
        or not any(y.known is not None and beyond(y.known, x.known).all() for y in tensors)
    ]  # fmt: skip
    return kept if np.broadcast_shapes(*(x.shape for x in kept)) == shape else tensors


def _unordered(
    call: EvaluatedCall, op: str, parts: Sequence[CheckedTensor], bound: Array | None
) -> CheckedTensor:
    """Return the extremum of a set: its terms in their order, each one once."""
    dtype = parts[0].dtype
    shape = np.broadcast_shapes(*(x.shape for x in parts), () if bound is None else bound.shape)
    seed = seed_of(op, "set", class_of(dtype))

    def make() -> Array:
        terms = [np.broadcast_to(x.terms, shape) for x in parts]
        stacked = np.sort(np.stack(terms), axis=0, order=("a", "b"))
        made = stacked[0]
        for last, term in itertools.pairwise(stacked):
            made = np.where(are_equal(last, term), made, mix(seed, made, term))
        return made if bound is None else mix(seed, made, constants(bound))

    made = call.made(dtype, shape, make)
    made.form = Extremum(op, tuple(parts), bound)
    return made


# --- clamps ---------------------------------------------------------------------------------------


def clamped(call: EvaluatedCall, x: CheckedTensor, low: Array, high: Array) -> CheckedTensor:
    """Return a tensor between numbers; of a tensor that is one already, both are one clamp.

    Where `low` is above `high`, all is `high`.
    """
    shape = np.broadcast_shapes(x.shape, low.shape, high.shape)
    form = clamp_of(x)
    low = np.where(low > high, high, low)
    first, last = (_between(bound, low, high) for bound in (form.low, form.high))
    return of_clamp(call, Clamp(form.base, first, last), x.dtype, shape)


def of_clamp(call: EvaluatedCall, form: Clamp, dtype: int, shape: Sequence[int]) -> CheckedTensor:
    """Return the tensor of a form."""
    least, most = _none(dtype)
    if (form.low == least).all() and (form.high == most).all() and form.base.shape == tuple(shape):
        return form.base
    kind = class_of(dtype)

    def make() -> Array:
        made = clamp_terms(kind, form.base.terms, form.low, form.high)
        is_free = (form.low == least) & (form.high == most)
        return np.broadcast_to(np.where(is_free, form.base.terms, made), shape)

    made = call.made(dtype, shape, make)
    made.form = form
    return made


def clamp_terms(kind: str, base: Array, low: Array, high: Array) -> Array:
    """Return the terms of a clamp of elements of a class."""
    return mix(seed_of("clamp", kind), base, constants(low), constants(high))


def clamp_of(x: CheckedTensor) -> Clamp:
    """Return a tensor as a clamp; of most there are no bounds."""
    return x.form if isinstance(x.form, Clamp) else Clamp(x, *_none(x.dtype))


def _between(x: Array, low: Array, high: Array) -> Array:
    """Return numbers between bounds; a zero that is equal to a bound keeps its sign."""
    return np.where(x < low, low, np.where(x > high, high, x))


def _none(dtype: int) -> Bounds:
    """Return the bounds of a clamp that has none."""
    kind = numpy_dtype(dtype)
    if class_of(dtype) == "float":
        return np.asarray(-np.inf), np.asarray(np.inf)
    limits = integer_info(kind)
    return _wide(np.asarray(limits.min, kind)), _wide(np.asarray(limits.max, kind))


def _wide(numbers: Array) -> Array:
    """Return numbers in the widest dtype of their class."""
    if kind_of(numbers.dtype) == "float":
        return numbers.astype(np.float64)
    return numbers if numbers.dtype == np.uint64 else numbers.astype(np.int64)


EXTREMA: Final[dict[str, Any]] = {
    "Clip": clip, "Max": extremum, "Min": extremum, "Relu": relu,
}  # fmt: skip
