"""Sums, products, quotients, powers and Casts of elements over the reals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiered.certify.domains.affine import Affine
from tiered.certify.domains.bits import RULES as ON_BITS
from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import Call, Results
from tiered.certify.evaluation.values import Unproved, class_of, holds
from tiered.certify.reals.lifting import domain_of, function, lifted
from tiered.certify.rules.elementwise import broadcast, known


def _arithmetic(call: Call, make: Callable[..., Array]) -> Results:
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


def add(call: Call) -> Results:
    return _arithmetic(call, domain_of(call).add)


def sub(call: Call) -> Results:
    domain = domain_of(call)
    return _arithmetic(call, lambda x, y: domain.add(x, domain.scaled(y, -1.0)))


def mul(call: Call) -> Results:
    return _arithmetic(call, domain_of(call).mul)


def div(call: Call) -> Results:
    domain = domain_of(call)
    return _arithmetic(call, lambda x, y: domain.mul(x, domain.inverse(y)))


def neg(call: Call) -> Results:
    domain = domain_of(call)
    return _arithmetic(call, lambda x: domain.scaled(x, -1.0))


def reciprocal(call: Call) -> Results:
    return _arithmetic(call, domain_of(call).inverse)


def sum_(call: Call) -> Results:
    domain = domain_of(call)

    def make(*elements: Array) -> Array:
        made = elements[0]
        for each in elements[1:]:
            made = domain.add(made, each)
        return made

    return _arithmetic(call, make)


def power(call: Call) -> Results:
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


def cast(call: Call) -> Results:
    x = call.operand(0)
    to = call.operand(1).dtype if call.op == "CastLike" else call.attributes["to"]
    kinds = class_of(x.dtype), class_of(to)
    is_wider = kinds == ("float", "float") and holds(to, x.dtype)
    if x.known is None and (is_wider or kinds == ("integer", "float")):
        return [call.made(to, x.shape, lambda: x.terms, exact=x.exact)]
    return lifted(ON_BITS["Cast"])(call)


def batch_normalization(call: Call) -> Results:
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
