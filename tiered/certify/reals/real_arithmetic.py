"""Sums, products, quotients, powers and Casts of elements over the reals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tiered.certify.domains.affine_elements import Affine
from tiered.certify.domains.bits import RULES as ON_BITS
from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import EvaluatedCall, Results
from tiered.certify.evaluation.values import CheckedTensor, Unproved, class_of, holds
from tiered.certify.reals.lifting import domain_of, function, lifted
from tiered.certify.rules.bit_elementwise import broadcast, known

MOST_SUMMANDS: Final = 8
"""Sums of more are sums of sums: their order counts."""


def _arithmetic(call: EvaluatedCall, make: Callable[..., Array]) -> Results:
    tensors = [x for x in call.inputs if x is not None]
    if class_of(tensors[0].dtype) != "float":
        return lifted(ON_BITS[call.op])(call)
    shape = broadcast(tensors)
    numbers = [x.known for x in tensors if x.known is not None]
    if len(numbers) == len(tensors):
        return [known(call, numbers, tensors[0].dtype)]

    def all_elements() -> Array:
        return np.broadcast_to(make(*(x.terms for x in tensors)), shape)

    return [call.made(tensors[0].dtype, shape, all_elements)]


@dataclass(frozen=True)
class Summands:
    """A sum in any order; no summand is a sum itself."""

    parts: tuple[CheckedTensor, ...]


def _parts_of(x: CheckedTensor) -> tuple[CheckedTensor, ...]:
    return x.form.parts if isinstance(x.form, Summands) else (x,)


def _scaled(call: EvaluatedCall, x: CheckedTensor, factor: Array | float) -> CheckedTensor:
    """Return a tensor times numbers; of a sum each summand."""
    domain, shape = domain_of(call), np.broadcast_shapes(x.shape, np.shape(factor))
    made = call.made(x.dtype, shape, lambda: np.broadcast_to(domain.scaled(x.terms, factor), shape))
    if isinstance(x.form, Summands):
        made.form = Summands(tuple(_scaled(call, part, factor) for part in x.form.parts))
    return made


def total(call: EvaluatedCall, tensors: Sequence[CheckedTensor]) -> Results:
    """Return a sum, with its summands as its form."""
    parts = [part for x in tensors for part in _parts_of(x)]
    parts = parts if len(parts) <= MOST_SUMMANDS else [*tensors]
    domain, shape = domain_of(call), broadcast(tensors)

    def make() -> Array:
        return np.broadcast_to(domain.add(*(x.terms for x in parts)), shape)

    made = call.made(tensors[0].dtype, shape, make)
    made.form = Summands(tuple(parts))
    return [made]


def add(call: EvaluatedCall) -> Results:
    """Add and Sum."""
    tensors = [x for x in call.inputs if x is not None]
    if not _is_open(tensors):
        return _arithmetic(call, domain_of(call).add)
    return total(call, tensors)


def sub(call: EvaluatedCall) -> Results:
    x, y = call.operand(0), call.operand(1)
    if not _is_open([x, y]):
        return _arithmetic(call, domain_of(call).add)
    return total(call, [x, _scaled(call, y, -1.0)])


def mul(call: EvaluatedCall) -> Results:
    x, y = call.operand(0), call.operand(1)
    for one, factor in ((x, y), (y, x)):
        if _is_open([x, y]) and factor.known is not None and isinstance(one.form, Summands):
            return [_scaled(call, one, factor.known.astype(np.float64))]
    return _arithmetic(call, domain_of(call).mul)


def _is_open(tensors: Sequence[CheckedTensor]) -> bool:
    """Return whether tensors are floats, and not all numbers."""
    is_float = class_of(tensors[0].dtype) == "float"
    return is_float and any(x.known is None for x in tensors)


def div(call: EvaluatedCall) -> Results:
    x, y, domain = call.operand(0), call.operand(1), domain_of(call)
    if _is_open([x]) and y.known is not None and y.known.all() and isinstance(x.form, Summands):
        return [_scaled(call, x, 1 / y.known.astype(np.float64))]
    return _arithmetic(call, lambda x, y: domain.mul(x, domain.inverse(y)))


def neg(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    if not _is_open([x]):
        return _arithmetic(call, domain_of(call).add)
    return [_scaled(call, x, -1.0)]


def reciprocal(call: EvaluatedCall) -> Results:
    return _arithmetic(call, domain_of(call).inverse)


def power(call: EvaluatedCall) -> Results:
    """A power of a small integer is a product."""
    x, exponent = call.operand(0), call.operand(1).known
    if exponent is None or exponent.size != 1 or float(exponent.reshape(())) not in (2, 3, 4):
        return function(call)
    shape, times = broadcast([x, call.operand(1)]), int(exponent.reshape(()))
    if x.known is not None:
        return function(call)
    domain = domain_of(call)
    return [call.made(x.dtype, shape, lambda: powered(domain, x.terms, times).reshape(shape))]


def powered(domain: Affine, x: Array, times: int) -> Array:
    """Return the product of as many elements."""
    made = x
    for _ in range(times - 1):
        made = domain.mul(made, x)
    return made


def cast(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    to = call.operand(1).dtype if call.op == "CastLike" else call.attributes["to"]
    kinds = class_of(x.dtype), class_of(to)
    is_wider = kinds == ("float", "float") and holds(to, x.dtype)
    if x.known is None and (is_wider or kinds == ("integer", "float")):
        return [call.made(to, x.shape, lambda: x.terms, exact=x.exact)]
    return lifted(ON_BITS["Cast"])(call)


def batch_normalization(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    scale, shift, mean, var = (call.operand(at) for at in range(1, 5))
    outputs = [name for name in call.node.output if name]
    if call.get("training_mode", 0) or len(outputs) > 1:
        raise Unproved("BatchNormalization in training")
    if any(each.known is None for each in (scale, shift, mean, var)):
        return lifted(ON_BITS["BatchNormalization"])(call)
    shape = (x.shape[1], *[1] * (x.rank - 2)) if x.rank > 1 else (1,)
    s, b, m, v = (
        each.numbers("a parameter").astype(np.float64).reshape(shape)
        for each in (scale, shift, mean, var)
    )
    factor = s / np.sqrt(v + call.get("epsilon", 1e-5))
    domain = domain_of(call)

    def make() -> Array:
        return domain.add(domain.scaled(x.terms, factor), domain.constant(b - factor * m))

    return [call.made(x.dtype, x.shape, make)]
